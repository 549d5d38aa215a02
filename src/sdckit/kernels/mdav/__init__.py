"""Exact MDAV: the same groups of records as the textbook loop forms, in far less time.

`flat_scan` is for small files; `tree_build` and `tree_search` use a k-d tree and delete grouped records, and
`far_list` finds the farthest record for them; `float32_scan` scans in float32 and checks in float64 where no
tree helps; `state` is what these share, and `lanes` measures 16 distances at once; `missing_cells` is for
files with missing cells, on `missing_tree` and `missing_search`, which V-MDAV uses as well. `groups` chooses
among them.
"""
