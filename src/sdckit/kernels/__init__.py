"""Compiled arithmetic: arrays in, arrays out. Nothing here knows a dataframe, a metric or a method."""
