"""The classifier of quality that ships, on passages of three authors that it was not trained on."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from headlight.lab.data.damage import DAMAGES
from headlight.lab.data.documents import stream_documents
from headlight.lab.data.quality import read_classifier

GOLD = Path(__file__).parents[4] / "lab" / "evaluation" / "gold"
AUTHORS = ("sophie_may", "madeline_brandeis", "andrew_lang")


@pytest.fixture(scope="module")
def passages():
    return [
        document.text
        for document in stream_documents([GOLD / f"{name}.txt" for name in AUTHORS], "passage")
    ]


@pytest.fixture(scope="module")
def auc(passages):
    """Return a function that tells how well damaged passages are told from whole ones."""
    classifier = read_classifier()
    good = [classifier.score(text) for text in passages]

    def measure(damaged):
        bad = [classifier.score(text) for text in damaged]
        return roc_auc_score([1] * len(good) + [0] * len(bad), np.array(good + bad))

    return measure


@pytest.mark.parametrize("kind", DAMAGES)
def test_every_damage_is_told_from_whole_passages_of_other_authors(passages, auc, kind):
    damage = DAMAGES[kind]
    assert auc([damage(text, Random(number)) for number, text in enumerate(passages)]) >= 0.97


def test_plain_doubled_quotes_are_told_wherever_there_are_some(passages, auc):
    quoted = [text.replace('"', '""') for text in passages if '"' in text]
    assert len(quoted) > 50
    assert auc(quoted) >= 0.97


def test_whole_passages_of_other_authors_are_kept(passages):
    classifier = read_classifier()
    assert sum(classifier.score(text) < 0.5 for text in passages) <= 0.03 * len(passages)
