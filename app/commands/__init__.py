"""The commands: a module has the options of a command and its work."""
