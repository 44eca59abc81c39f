"""From a request to an answer: validated, batched with others, computed, cached.

`jobs` checks the length of a text and names the result; `batch` computes several jobs in one pass;
`service` shares answers, `cache` keeps them; `analyses` and `edits` translate the names of a
request for `headlight.model`. `generation` continues texts.
"""
