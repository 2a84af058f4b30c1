"""Tests of Leaderfall. A package, so that ``python -m tests.determinism`` runs from a checkout."""
