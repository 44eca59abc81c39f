"""Experiments: pure, seeded, bounded functions from parameters to named arrays.

To add one, write its file here, with an `Experiment` named ``EXPERIMENT`` and a test, and add it to
`registry.py`; the API, the command line and the client then have it.
"""
