"""Statistics of two columns in a form that adds up over blocks of records; memory has a single block."""
