"""The study that proposed brMAE and brMSE, reproduced: its tables, correlations and claims."""
