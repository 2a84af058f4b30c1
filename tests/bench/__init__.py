"""Benchmarks: ``python -m tests.bench NAME`` from the top of a checkout.

Each prints what it measured against a reference that ran in the same process, interleaved with it,
and whether a budget is met. A figure never fails anything: the exit status is 0 whatever it says.
"""
