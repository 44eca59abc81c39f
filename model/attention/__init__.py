"""Attention, from the formula of the paper to texts of any length.

    terms      everything but queries and keys that the weights of a softmax depend on
    layer      multi-head attention in the order of the paper: project, split, attend, join
    points     the hook points of a softmax, and those of a layer
    kernels    `attend`, which chooses a kernel: fused, whole or in blocks
    scores     the scores of any block of queries and keys, by their terms
    blockwise  attention block by block, which never holds a matrix of every query and key
    observer   what is kept of the weights of a pass while they are computed: maps, rows, statistics

Read `layer`, then `kernels`. Models of other libraries come in at `kernels.attend`
(`headlight.model.foreign.attention`).
"""
