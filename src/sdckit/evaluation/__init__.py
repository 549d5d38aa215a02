"""Evaluations: what is measured of a masked file, and the result, which draws its charts and its report."""
