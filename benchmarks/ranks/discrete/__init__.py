"""A second judge of many ranks, made another way: hosts and devices that run, launch, wait and meet, written as profiles."""
