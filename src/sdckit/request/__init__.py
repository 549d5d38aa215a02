"""Job files: what a command does, as a TOML file that can be read, checked, written and repeated."""
