"""Histories of clients, and checks that know nothing else (FAULTS D.3).

``recorder`` takes down what clients asked and were told; ``checking.check`` says which of it
contradicts what; ``anomalies`` has the table of what is legal when.

Left out: what brokers and logs know (``sim.checks``), and whether both layers agree
(``sim.running.agreement``).
"""
