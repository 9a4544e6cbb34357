"""The start and the end of a command, which count as much as what it does."""
