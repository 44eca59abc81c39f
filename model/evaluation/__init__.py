"""How good a model is: one quantity a file, each measured on text it never trained on."""
