"""Which rank the others wait for, and why."""
