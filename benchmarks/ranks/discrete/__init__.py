"""Jobs run as a discrete-event simulation: hosts and devices that run, launch, wait and meet, written as profiles."""
