"""What was it that lost the records, or broke the rule? Answered by runs without it.

``parts`` says what of a scenario can be left out, ``counterfactual`` runs it without, ``culprits``
finds the parts that an event goes back to. On these stand ``necessity``, which tests the culprits
of licensed losses, ``search`` for a smallest set to blame, and ``slices``, which tells how the one
led to the other.

Left out: printing (``sim.cli.blame``).
"""
