"""Analyses: pure functions from a `Trace` to named arrays, one quantity per file.

The analyses that a request may ask for are in `headlight.analyses`.
"""
