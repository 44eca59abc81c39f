"""The work of the commands; `app/cli.py` has their options."""
