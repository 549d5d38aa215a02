"""Shared definitions of all layers above: registry, input checks, tables and column roles."""
