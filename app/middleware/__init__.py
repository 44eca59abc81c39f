"""What a request passes on its way to a route, and an answer on its way out: one layer a file."""
