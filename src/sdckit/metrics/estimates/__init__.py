"""Estimates that users of a file compute, in the original and in the masked file, with standard errors."""
