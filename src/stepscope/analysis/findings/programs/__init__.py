"""Parts of compiled programs, and what the host itself computes where there is no device."""
