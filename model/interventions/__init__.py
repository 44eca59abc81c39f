"""Interventions in a forward pass, one kind of edit a module."""
