"""Analyses: pure functions from a `Trace` to named arrays, one quantity per file.

To add one, write its file here, add it to `ANALYSERS` in app/tracing/analyses.py and its name to
`AnalysisName` in app/schemas/analyses.py; a test holds the two equal.
"""
