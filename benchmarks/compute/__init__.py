"""FLOPs and bytes of the account of compute against the hardware's counters."""
