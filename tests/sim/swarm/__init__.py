"""Scenarios drawn by chance, and what a sweep over them must not find."""
