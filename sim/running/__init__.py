"""Running a scenario: its steps and faults in a world, what it expects, and what came of it.

``interpreter`` carries steps out, ``observables`` answers what expressions ask, ``expectations``
judges them, ``scenario_run`` puts all of it together and gives a ``Result``.
"""
