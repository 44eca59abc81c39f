"""Profiles of a model's heads, measured over many sentences.

    measure   measure a profile: the scores of each head, and what its ablation costs
    sums      the sums over sentences that scores are made of
    ablation  by how much predictions get worse without a head
    replay    passes that begin at a layer
    feeders               the earlier heads that write what a head reads
    examples  sentences for any language model, each kept if the model shows it
    digits    the profile of a model that multiplies
    folder    the profile of the model in a folder: measured and written

Read `measure`, which names the scores. A profile's file is `headlight.model.checkpoint.profile`.
"""
