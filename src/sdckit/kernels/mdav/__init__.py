"""Exact MDAV: which records are grouped together, the same as in the textbook loop, in far less time.

`scanning` is for small files; `planting` and `shrinking` have a k-d tree that records are taken from;
`filtering` scans in float32 and checks in float64 where no tree helps; `ledger` is what these share;
`incomplete` is for files with missing cells. `sdckit.masking.partition` chooses among them.
"""
