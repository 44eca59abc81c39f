"""A transformer written to be read: its parts, its hook points and everything it needs."""
