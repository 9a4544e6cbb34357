"""How much memory arrays take and instructions of compiled programs touch."""
