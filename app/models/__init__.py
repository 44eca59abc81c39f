"""The models of a server.

    model_registry  the allow-list of models, described without weights, loaded when they are used
    memory          the models in memory, within a budget
    loads           models that are being loaded
    foreign         descriptions and kept self-checks of other libraries' models
    staging         the hidden folders of models being added, and what a killed process left
    atlases         the atlas of each model

Read `model_registry`.
"""
