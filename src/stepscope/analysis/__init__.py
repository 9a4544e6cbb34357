"""One question per file, asked of one trace."""
