"""How the device was used: busy time, copies, the launch queue."""
