"""Texts that a model writes, token by token.

    sampling       sample the next token, append it, repeat; with a cache of what was read
    continuations  texts that are sampled together, with their log-probabilities
    search         choose a continuation among several: beam search, best of n
    translation    the beam search of an encoder–decoder
    writing        the text that a model writes, in one call

Read `sampling`.
"""
