"""Recording inside real training jobs, and everything that can go wrong there."""
