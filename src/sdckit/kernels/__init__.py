"""Compiled functions on numpy arrays; they know no dataframe, no metric and no masking method."""
