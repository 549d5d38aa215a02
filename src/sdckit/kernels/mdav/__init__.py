"""Exact MDAV: which records are grouped together, the same as in the textbook loop, in far less time.

`flat_scan` is for small files; `tree_build` and `tree_search` have a k-d tree that records are taken from;
`float32_scan` scans in float32 and checks in float64 where no tree helps; `state` is what these share;
`missing_cells` is for files with missing cells. `groups` chooses among them.
"""
