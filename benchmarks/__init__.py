"""Ours and the peers side by side: seconds, peak memory, and whether the promised ratios hold."""
