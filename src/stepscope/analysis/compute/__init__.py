"""What a device could have done at best with its compute time, and where the rest was lost."""
