"""Every request, answer and event of the API; the server and the client share them.

Nothing here imports PyTorch or the server. The documentation at /docs is made from these classes.
"""
