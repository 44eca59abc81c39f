"""The work of the commands that train and evaluate models and clean text."""
