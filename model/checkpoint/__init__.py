"""Models as folders: configuration, weights, tokenizer, card and training curves."""
