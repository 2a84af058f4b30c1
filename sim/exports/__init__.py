"""Traces for other tools: ShiViz, Mermaid, PlantUML, Perfetto.

One module a format, each with one function from header, events and story to lines of ASCII. What a
tool cannot take is left out, and a notice says so.

Left out: files and the command line (``sim.cli.export``).
"""
