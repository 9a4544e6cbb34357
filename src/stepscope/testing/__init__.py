"""Budgets in tests: the pytest plugin."""
