"""Edit rules of a file: read, discovered, restored in masked files; and totals that shall hold."""
