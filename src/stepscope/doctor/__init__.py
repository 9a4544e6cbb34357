"""Why a profile is missing, empty or wrong, and the exact fix: one small function per check."""
