"""What the host itself computes where there is no device: programs of JAX, and ops of PyTorch."""
