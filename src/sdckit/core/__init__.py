"""The vocabulary of all layers above: the registry, checks of input, tables and the roles of columns."""
