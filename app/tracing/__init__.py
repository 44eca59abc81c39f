"""From a request to an answer: validated, batched with others, computed, cached.

`jobs` checks the length of a text and names the result; `batch` computes several jobs in one pass;
`service` caches and shares answers; `analyses` and `edits` translate what a request names into
`headlight.model.analysis` and `headlight.model.interventions`. `generation` continues texts,
`long_texts` reads books.
"""
