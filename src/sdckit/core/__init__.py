"""Definitions that all other packages share: registry, input checks, tables, roles of columns."""
