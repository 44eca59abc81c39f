"""The work of the commands, which imports PyTorch; their options are in `app/cli.py`."""
