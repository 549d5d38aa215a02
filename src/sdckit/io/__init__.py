"""Files: reading, writing without half-written results, dialects of text, and the data sets."""
