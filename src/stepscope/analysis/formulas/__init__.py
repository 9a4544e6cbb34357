"""FLOPs and least bytes of ops, one family per file."""
