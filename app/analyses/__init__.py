"""The analyses that a request may ask for: what each reads, computes and answers.

An analysis is a subclass of `analysis.Analysis` in a module of this folder. Schemas, documentation,
cards, saved pages, client and command line are derived from it, so nothing else registers it. Its
docstring is its description. Its class `Options` holds the options that it alone reads, which a
request has as a member with the name of the analysis; options that several read are an
`AnalysisOptions` of their own. Computing that others use as well is in `headlight.model.analysis`.

Modules import PyTorch only in methods: the client and `headlight trace --help` import them all.
"""
