"""The simulated world: virtual time, seeded choice, network, disks, faults, scenarios and checks.

Here so far: keyed draws (``sim.draws``), the simulated disk (``sim.disks``) and the locator of the
scenario files (``sim.scenario_files``).
"""
