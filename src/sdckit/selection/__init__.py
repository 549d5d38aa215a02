"""Choose a masking: sweep settings, find the frontier of loss and risk, recommend, release."""
