"""Compiled functions on numpy arrays; they take and return arrays only."""
