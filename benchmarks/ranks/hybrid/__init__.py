"""The public what-if set of hybrid-parallel training (ByteDance-Seed/StragglerAnalysis): its jobs replayed by our engine."""
