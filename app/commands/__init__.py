"""What the commands of `headlight` do and print; `app/cli.py` names them."""
