"""The version of the package, for every layer that writes it down."""

VERSION = "0.1.0"
