"""Findings about data that moves: copies that nothing hides, detours over the host, communication."""
