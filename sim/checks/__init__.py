"""Judgement of a live world: invariants I1 to I20 and the durability ledger.

``sim.checks.judge.Judge(world)`` looks on; ``README.md`` of package ``sim`` says how.
"""
