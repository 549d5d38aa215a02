"""The page in the browser: the whole job, from a file to a release, on this machine only."""
