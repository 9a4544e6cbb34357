"""Which collective calls of different ranks are the same call."""
