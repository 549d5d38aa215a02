"""Exact MDAV: which records are grouped together, the same as in the textbook loop, in far less time.

`scanning` is for small files, `planting` and `shrinking` are a k-d tree that loses records, `filtering` scans in
float32 and checks in float64 where no tree helps, `incomplete` is for files with missing cells; `ledger` is
what the first three share. `sdckit.masking.partition` chooses among them.
"""
