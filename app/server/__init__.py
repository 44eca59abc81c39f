"""The server process: uvicorn, its port, its shutdown and its banner."""
