"""Scenario files: from TOML text to checked data, with every mistake told at once.

``reading`` has ``read_scenario`` and ``parse_scenario``, ``model`` what they return, ``effective``
applies a variant and ``--set``, ``build`` makes the world's configuration of it. Nothing here runs
anything, and no text of a file is ever evaluated as Python.
"""
