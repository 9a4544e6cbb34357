"""Measured physics: what devices, hosts and profilers do, each figure with its device, how and when it was measured.

Figures that have not been measured are here, too, where they describe a machine and not a taste: they say `chosen; not measured`.
"""
