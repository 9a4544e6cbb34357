"""Ops: calls, FLOPs, stacks, forward and backward."""
