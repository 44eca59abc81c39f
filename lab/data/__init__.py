"""Clean a corpus: `deduplication`, `quality` and `topics` judge the documents of `documents`.

`report` applies them in order and counts what each drops; `headlight data` runs it. Training reads
its corpus in `headlight.model.corpus`.
"""
