"""The paper that proposed brMAE and brMSE, reproduced: its tables, figures and claims."""
