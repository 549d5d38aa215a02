"""Files: reading, atomic writing, text dialects, and the data sets."""
