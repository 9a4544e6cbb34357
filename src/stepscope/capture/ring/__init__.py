"""A memory-mapped ring that keeps host events, steps and telemetry when the process is killed."""
