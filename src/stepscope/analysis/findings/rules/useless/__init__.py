"""Work that the result does not need."""
