"""The step replayed with a change applied, for promised speed-ups."""
