"""The ring that a killed recording leaves."""
