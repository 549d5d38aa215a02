"""Choose a masking: try many settings, weigh loss against risk, recommend one setting, and release data."""
