"""Profiles of a model's heads, measured over many sentences.

    measure               measure a profile: the scores of each head, and what its ablation costs
    sums                  the sums over sentences that scores are made of
    ablation              by how much predictions get worse without a head
    controlled_sentences  sentences from templates in which a word and its control are known
    profile               the profile in a model's folder

Read `measure`, which names the scores.
"""
