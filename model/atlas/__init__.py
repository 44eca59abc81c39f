"""An atlas: all strong attention weights of a model over a corpus, by word, tag and distance.

`headlight atlas build` writes one: `layout` names its files, `search`
asks them, `matching` compares the heads of two models.
"""
