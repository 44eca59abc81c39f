"""Checkpoints: a model in a folder of files, and in memory.

    files             check the files of an untrusted folder before one is opened
    card              CARD.md: data, training, licence and figures
    profile           the profile of a model's heads: its shape, its labels and its file
    exits             a final norm and an unembedding, as a lens reads with them
    shared_tokenizer  one tokenizer that several folders name
    difference        a model that is stored as its difference from another one
    run_curves        the figures of a training run by step
    steps             the states of a training, in sub-folders
    loading           `load`, `save` and `describe` a folder
    checkpoint        `Checkpoint`: a model with its tokenizer and metadata, which is `Served`

Read `loading`. Folders of other libraries are those of `headlight.model.foreign`.
"""
