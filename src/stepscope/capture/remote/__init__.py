"""Recording on request: the listening thread, and those who ask it."""
