"""From a request to an answer: validated, batched with others, computed, cached.

`jobs` checks the length of a text and computes a batch; `service` caches and shares answers;
`analyses` and `edits` translate what a request names into `headlight.model.analysis` and
`headlight.model.interventions`. `long_texts`, `generation` and `positional` are the other calls.
"""
