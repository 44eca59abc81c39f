"""The computations of experiments that need PyTorch, imported with their first run."""
