"""Kernels: calls, precision, occupancy, achieved FLOP/s."""
