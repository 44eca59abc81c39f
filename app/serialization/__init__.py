"""Serialization of answers.

`trace` writes a trace as JSON or safetensors; `negotiation` chooses format and compression from the
Accept headers and makes entity tags; `sending` sends the parts.
"""
