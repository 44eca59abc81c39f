"""The optimization of a training run.

    optimizers  Muon for the matrices inside the layers, AdamW for everything else
    schedule    the learning rate by step

Experiments on the page and training share them.
"""
