"""The server process: its port, its connections, its end, and what it says of itself."""
