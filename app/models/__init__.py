"""The models of a server: which there are, which are in memory, and foreign ones."""
