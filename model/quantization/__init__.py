"""Quantization: the weights of a model in 2 to 8 bits each.

    affine   round a tensor, the weights of a pass, or the inputs of linear layers
    storage  the bits of a file, packed

Read `affine`, which has the formula.
"""
