"""Where every microsecond and every byte of a training step went, and what to change."""
