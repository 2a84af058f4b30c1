"""The simulated world: virtual time, seeded choice, network, disks, faults, scenarios and checks.

``README.md`` of this package says what is where. Nothing is imported here, so that a part of it
costs no more than itself.
"""
