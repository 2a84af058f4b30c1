"""The command line: ``leaderfall`` and ``python -m sim.cli``.

``main`` has the commands' names and what becomes of errors; each command is a module of its own,
and is imported when it is used. Modules here import only click at their top, so that help comes at
once.

Left out: everything that is not about files, arguments and terminals.
"""
