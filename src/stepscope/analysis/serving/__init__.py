"""Inference: how it is recognised, what engines call their executions, phases, tokens and gaps."""
