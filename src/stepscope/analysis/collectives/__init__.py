"""Collective calls of one rank, from kernels, XLA programs and host calls."""
