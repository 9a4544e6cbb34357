"""Callbacks and hooks for frameworks that own the training loop. Each can be imported without its framework."""
