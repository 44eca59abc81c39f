"""An atlas: all strong attention weights of a model over a corpus, by word, tag and distance.

    ranges    a corpus cut into ranges of bytes
    tags      parts of speech by rules
    shards    read one range: the sums of every head, and its strong weights
    workers   read shards on several cores or machines
    build     read the shards that are missing, and join them
    summary   the commonest of every head
    layout    the files of an atlas
    search    ask which heads attend from some words to others
    deciles   from the sentences where a head does least to those where it does most
    space     the vectors of a head on their principal axes
    matching  match the heads of two models, and where those attend elsewhere

Read `layout`, then `build`, which `headlight atlas build` calls.
"""
