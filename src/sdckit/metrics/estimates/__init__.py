"""`compare`: a function of a table in both files."""
