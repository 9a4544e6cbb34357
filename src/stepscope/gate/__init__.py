"""Budgets in CI: limits, verdicts, exit codes."""
