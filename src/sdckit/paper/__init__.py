"""The study that proposed brMAE and brMSE ("the note"), reproduced: its tables, figures and claims."""
