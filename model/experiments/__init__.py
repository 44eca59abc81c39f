"""Experiments: pure, seeded, bounded functions from parameters to named arrays.

To add one, write its file here, with an `Experiment` named ``EXPERIMENT``, its drawings in
`static/js/views/experiments/`, and a test; the API, the command line, the client and the page then
have it.
"""
