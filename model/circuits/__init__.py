"""Circuits: the edges between a model's parts, their scores, cuts, tasks and studies."""
