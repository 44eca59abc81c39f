"""Files for browsers: where they lie, and their bytes as they are sent."""
