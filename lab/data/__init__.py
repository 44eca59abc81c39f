"""Clean a corpus: `deduplication` and `model.text_quality` judge the documents of `documents`.

`report` applies them in order and counts what each drops; `headlight data` runs it. Training reads
its corpus in `headlight.model.corpus`.
"""
