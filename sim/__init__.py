"""The simulated world: virtual time, seeded choice, network, disks, faults, scenarios and checks.

Of all that only the locator of the scenario files (``sim.scenario_files``) is here yet.
"""
