"""Jobs of several ranks, real and simulated."""
