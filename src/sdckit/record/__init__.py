"""The private record of releases: how each file that was handed out was made, and how to make it again.

A folder for its owner alone has one subfolder a release, with the settings, the entropy of its draws, the
order of its rows, a copy of the file, and keyed fingerprints of the records. None of it is for publication.
"""
