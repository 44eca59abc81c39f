"""Chapters: steps of text that open the page or an experiment, with questions.

`chapter` reads a file, `rules` computes what is right, `many` measures a claim over many texts,
`library` finds the files, and `check` opens every step. The shipped ones are in `shipped/`; the
README says how to write one.
"""
