"""Files: reading tables, writing them completely or not at all, text dialects, and data sets."""
