"""The whole job: what its ranks do for each other, and how long it would take if …"""
