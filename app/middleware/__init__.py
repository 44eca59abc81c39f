"""ASGI middleware, one concern per file; app/main.py gives the order."""
