"""`python -m headlight` is the command `headlight`."""

from headlight.cli import app

app()
