"""SQL over a profile's tables, in a sandbox."""
