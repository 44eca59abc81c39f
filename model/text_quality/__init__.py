"""The quality of a text.

    features    counts of its words, sentences, letters and repeats
    classifier  the logistic regression that was trained on them, `quality.json`

`quality.md` is the card of the classifier.
"""
