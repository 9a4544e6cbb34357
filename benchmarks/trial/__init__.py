"""A trial of the diagnosis on jobs that it has not seen: recorded with the gain of their fix, then scored.

python -m benchmarks.trial.record JOBS_FOLDER OUT
python -m benchmarks.trial.score OUT
"""
