"""Information loss and disclosure risk of a masked file, measured against its original."""
