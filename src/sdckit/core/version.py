"""Version number of the package."""

VERSION = "0.1.0"
