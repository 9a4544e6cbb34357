"""Matrices that compiled programs factor: what they are, and what is read of their inverse."""
