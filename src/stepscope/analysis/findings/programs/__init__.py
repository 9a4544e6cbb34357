"""Programs of JAX that the host itself runs: whose time is what, and what a change leaves of it."""
