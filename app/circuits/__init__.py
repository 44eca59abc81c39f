"""Circuits for the server and the command line: found, and written as files."""
