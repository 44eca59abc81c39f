"""Head profiles: what each head of a model does on many sentences, and its cost when off."""
