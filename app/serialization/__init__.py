"""Answers on their way to a client, none of which changes a number.

`formats` says in which forms arrays are sent, `accept` which one a request chooses, `compression`
the codings, `entity_tags` which content a client has; `trace` writes a trace as JSON or
safetensors, and `sending` sends bytes and events.
"""
