"""Small training jobs, each with one planted bottleneck and its fix, recorded on a real GPU.

python -m benchmarks.diagnosis OUT [--only REGEX]
"""
