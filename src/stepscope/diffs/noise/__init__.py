"""How much two runs differ by chance: bootstrap, scatter, machine speed."""
