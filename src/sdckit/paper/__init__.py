"""The study that proposed brMAE and brMSE, computed anew: its tables, correlations and claims."""
