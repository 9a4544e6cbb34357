"""Hybrid-parallel jobs of 64 to 512 ranks, simulated from FLOPs, links and schedules, with one planted trouble each.

Nothing here is taken from recordings, and nothing knows how stepscope judges: who waits for whom follows from the arithmetic.
"""
