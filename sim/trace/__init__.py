"""Traces: what happened in a world, event by event, with causes and reversible changes.

``kinds`` and ``kind_docs`` say what events there are, ``lines`` how they are written. ``writer``
writes them, and ``reader`` reads them back through ``parsing``; ``fold`` steps forward and back
through the state, and ``diff`` finds the first event in which two traces differ.
``python -m sim.trace`` is the command line.
"""
