"""Exact MDAV: the same groups of records as the textbook loop forms, in far less time.

`scan` measures all ungrouped records for each group: for small files, and where no tree helps. `tree` uses a
k-d tree and deletes grouped records. `state` is what both share. `missing` is for files with missing cells.
`groups` chooses among them.
"""
