"""Continuations of a text: sampling, search among several, and translation."""
