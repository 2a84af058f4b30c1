"""The X-ray of a log's directory: how an offset becomes bytes, what is durable, what each file is.

``sim.xray.reading.xray`` reads a directory, strictly read-only, and gives plain data of JSON's own
types, which the terminal prints and the page embeds. ``sim.xray.lookup`` answers look-ups by offset
and by time from that data alone, step by step.

Left out: how it looks (``sim.cli.xray``).
"""
