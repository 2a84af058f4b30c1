"""A failing scenario made small: the same failure with fewer faults, steps, records and brokers.

``sim.shrinking.shrinker.shrink`` is the way in. Every candidate is the text of a scenario file that
is read, checked and run like any other; it counts if the same thing is wrong with it
(``Finding.identity``) and nothing that was not wrong before.

Left out: the command (``sim.cli.shrink``).
"""
