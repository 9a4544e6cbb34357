"""Recording on request: the listening thread, and its clients."""
