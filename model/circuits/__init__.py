"""Circuits: the few edges between the parts of a model that do a task.

    graph          writers and readers of a model, and the edges between them
    parts          a graph with its weights, proved exact on one text
    edges          the edges of a graph by position
    path_patching  passes in which a reader does not read all that was written
    cut            the edit in which a reader does not read what a writer wrote
    pairs          pairs of texts, their logit differences, and passes over many pairs
    edge_scores    score edges by gradients or by patching
    circuit        choose edges, and measure what their own run keeps
    tasks          pairs of texts that ship, or that a file holds

Read `graph`, then `path_patching`, then `circuit`.
"""
