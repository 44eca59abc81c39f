"""Quality: features of any text, and a classifier that is scikit-learn's without its objects."""

import json
import math
import random
from random import Random

import numpy as np
import pytest

from headlight.lab.data.damage import BOILERPLATE, DAMAGES, damaged
from headlight.lab.data.features import FEATURES, Text, features_of
from headlight.lab.data.quality import (
    SHIPPED,
    Extremes,
    Labelled,
    coefficients,
    read_classifier,
    read_examples,
    train_classifier,
)
from headlight.model.corpus import CorpusError

STORY = (
    "Once upon a time a small fox lived near the river. She was hungry, and the farmer had three "
    'fat hens. "I will wait," she said, "until he sleeps." But the old dog heard her steps.\n'
    "The fox ran back over the bridge and hid in the tall grass until the morning came."
)


def feature(name, text):
    return FEATURES[name](Text(text))


SECOND = (
    "In the morning the farmer's daughter opened the door. She saw small marks in the snow, and "
    'she laughed. "Father, come and look!" she cried. He counted his hens, and not one was missing.'
)


@pytest.mark.parametrize("text", ["", " \n", "?!", "a", "…", "123", "\u0301", "word", "🦊" * 9])
def test_any_text_has_finite_features(text):
    features = features_of(text)
    assert features.shape == (len(FEATURES),)
    assert np.isfinite(features).all()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("words (log)", "The cat's hat.", math.log(4)),
        ("sentences (log)", 'One. "Two!" Three? Four', math.log(5)),
        ("words per sentence", "One two three. Four.", 2),
        ("mean word length", "an old hat", 8 / 3),
        ("type–token ratio", "the cat the dog", 3 / 4),
        ("type–token ratio", "a b " * 50, 2 / 50),
        ("punctuation", "a, b.", 2 / 5),
        ("digits", "a1b2", 1 / 2),
        ("capitals", "ABcd", 1 / 2),
        ("sentences that begin with a capital", "One. two. Three.", 2 / 3),
        ("capitals within sentences", "One Two three. Four Five six.", 2 / 6),
        # 6 words, 1 sentence, 7 syllables.
        ("reading ease", "The cat sat on the table.", 206.835 - 1.015 * 6 - 84.6 * 7 / 6),
        ("function words", "the cat and the dog", 3 / 5),
        ("words of one letter", "a b I c", 2 / 4),
        ("words with digits inside", "he1lo you 12 don't", 1 / 4),
        ("ends a sentence", 'He said: "Go."\n', 1),
        ("ends a sentence", "He said", 0),
        ("repeated runs of 5 words", "a b c d e " * 2, 1 / 6),
        ("repeated lines", "one\ntwo\n\none\n", 1 / 3),
    ],
)
def test_a_feature_counts_what_it_says(name, text, value):
    assert feature(name, text) == pytest.approx(value)


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_changes_a_story_and_is_seeded(kind):
    number = list(DAMAGES).index(kind)
    name, worse = damaged(STORY, 0, number)
    assert name == kind
    assert worse not in ("", STORY)
    assert damaged(STORY, 0, number) == (name, worse)
    assert any(damaged(STORY, seed, number) != (name, worse) for seed in range(1, 12))


def test_each_kind_of_damage_does_what_its_name_says():
    shuffled = DAMAGES["shuffled"](STORY, Random(0))
    assert sorted(shuffled.split()) == sorted(STORY.split())
    assert DAMAGES["truncated"](STORY, Random(1)) in STORY
    assert any(line in BOILERPLATE for line in DAMAGES["boilerplate"](STORY, Random(0)).split("\n"))
    assert feature("repeated runs of 5 words", DAMAGES["repeated"](STORY, Random(0))) > 0.5


@pytest.fixture(scope="module")
def examples():
    """Two overlapping clouds of features, each text in its own group."""
    numbers = np.random.default_rng(0)
    labels = numbers.random(400) < 0.5
    features = numbers.normal(size=(400, len(FEATURES))) + 0.5 * labels[:, None]
    return [
        Labelled(
            features=row, is_good=bool(good), kind="good" if good else "bad", group=f"{number:03}"
        )
        for number, (row, good) in enumerate(zip(features, labels, strict=True))
    ]


def test_the_probability_is_that_of_scikit_learn(examples):
    # Importing it takes longer than all of these tests, so that no other worker does.
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold, GroupShuffleSplit
    from sklearn.preprocessing import StandardScaler

    classifier = train_classifier(examples, seed=3)
    features = np.stack([example.features for example in examples])
    labels = np.array([int(example.is_good) for example in examples])
    groups = [example.group for example in examples]
    split = GroupShuffleSplit(1, test_size=0.2, random_state=3).split(features, labels, groups)
    trained, held_out = next(split)
    scaler = StandardScaler().fit(features[trained])
    standard = scaler.transform(features[trained])
    folds = list(GroupKFold(5).split(standard, labels[trained], np.array(groups)[trained]))
    reference = CalibratedClassifierCV(
        LogisticRegression(max_iter=1_000), method="sigmoid", cv=folds, ensemble=False
    ).fit(standard, labels[trained])
    expected = reference.predict_proba(scaler.transform(features))[:, 1]
    assert np.allclose(classifier.probability(features), expected, atol=1e-12)
    auc = roc_auc_score(labels[held_out], expected[held_out])
    assert classifier.figures["auc"] == pytest.approx(auc, abs=1e-4)
    assert classifier.figures["auc_by_kind"] == {"bad": classifier.figures["auc"]}
    assert classifier.figures["held_out_documents"] == 80
    assert sum(row["documents"] for row in classifier.figures["calibration"]) == 80


@pytest.fixture(scope="module")
def classifier(examples):
    return train_classifier(examples, about={"good": ["a"]})


def test_a_classifier_is_read_back_from_its_file(examples, classifier, tmp_path):
    path = tmp_path / "classifier.json"
    path.write_text(classifier.to_json())
    assert read_classifier(path).probability(examples[0].features) == classifier.probability(
        examples[0].features
    )
    weights = [abs(weight) for _, weight in coefficients(classifier)]
    assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": ["words"]}, "made with other features"),
        ({"bias": float("nan")}, "is damaged"),
        ({"weights": [1.0]}, "is damaged"),
        ({"colour": 1}, "is not a classifier"),
    ],
)
def test_a_damaged_classifier_is_an_error(classifier, tmp_path, change, message):
    path = tmp_path / "classifier.json"
    path.write_text(json.dumps(json.loads(classifier.to_json()) | change))
    with pytest.raises(ValueError, match=message):
        read_classifier(path)
    with pytest.raises(ValueError, match="cannot be read"):
        read_classifier(tmp_path / "gone.json")


def test_a_group_lies_in_one_part(examples):
    """With one group of all the bad texts, a part of the data has no bad text."""
    grouped = [
        Labelled(
            features=example.features,
            is_good=example.is_good,
            kind=example.kind,
            group=example.group if example.is_good else "bad",
        )
        for example in examples
    ]
    with pytest.raises(ValueError, match="only one label"):
        train_classifier(grouped)


def test_one_label_or_few_documents_are_errors(examples):
    with pytest.raises(ValueError, match="good documents and bad ones"):
        train_classifier([])
    with pytest.raises(ValueError, match="good documents and bad ones"):
        train_classifier([example for example in examples if example.is_good])
    with pytest.raises(ValueError, match="at least 10 documents; there are 8"):
        train_classifier(examples[:8])


def test_labels_are_read_from_files_and_their_absence_is_named(tmp_path):
    good, labelled = tmp_path / "good.txt", tmp_path / "labelled.jsonl"
    good.write_text("A story.\n<|endofstory|>\nAnother.")
    labelled.write_text('{"text": "a", "label": "bad"}\n{"text": "b", "label": "good"}\n')
    read_back = list(read_examples([good], [], [labelled]))
    assert [example.is_good for example in read_back] == [True, True, False, True]
    labelled.write_text('{"text": "a", "label": "bad"}\n{"text": "b"}\n')
    with pytest.raises(CorpusError, match=r'line 2 has no member "label"'):
        list(read_examples([good], [], [labelled]))


def test_bad_documents_are_made_from_good_ones_of_the_same_group(tmp_path):
    good = tmp_path / "good.txt"
    good.write_text("\n<|endofstory|>\n".join([STORY] * 2 * len(DAMAGES)))
    made = list(read_examples([good], [], []))
    kinds = [example.kind for example in made]
    assert kinds == [kind for damage in [*DAMAGES] * 2 for kind in (damage, "good")]
    assert len({example.group for example in made}) == 2 * len(DAMAGES)
    assert made[0].group == made[1].group


def test_the_extremes_are_the_first_of_a_sorted_stream():
    rng = random.Random(0)
    scores = [round(rng.random(), 3) for _ in range(100)]
    extremes = Extremes(10)
    for number, score in enumerate(scores):
        extremes.add(score, f"text:{number}", f"word{number} " * 100)
    assert [item["score"] for item in extremes.best] == sorted(scores, reverse=True)[:10]
    assert [item["score"] for item in extremes.worst] == sorted(scores)[:10]
    assert len(extremes.best[0]["text"]) < 250


def test_the_extremes_hold_no_near_twins():
    extremes = Extremes(3)
    for number in range(8):
        extremes.add(0.5 + number / 20, f"twin:{number}", f"{STORY} The end, number {number}.")
    extremes.add(0.6, "other:1", "Quite another text, which has few words in common with it.")
    assert [item["source"] for item in extremes.best] == ["twin:7", "other:1"]
    assert [item["source"] for item in extremes.worst] == ["twin:0", "other:1"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wrongly decoded characters (log)", "She saidâ€™ that the cafÃ© was closed."),
        ("doubled accents (log)", "cafe\u0301\u0301"),
        ("doubled quotation marks (log)", 'He said ""no"" twice.'),
        ("tags and entities (log)", "<p>One &amp; two.</p>"),
        ("marks without a space (log)", "One,two.Three"),
        ("letters of long words (log)", "thelittlefoxwenthome"),
        ("words run together (log)", "The fox sat, and hesat on till he went, and wentto sleep."),
    ],
)
def test_a_fault_has_its_own_feature(name, text):
    assert feature(name, text) > 1
    assert feature(name, STORY) < 1


def test_the_classifier_that_ships_tells_a_story_from_its_damage():
    classifier = read_classifier()
    assert classifier.figures["auc"] > 0.9
    assert SHIPPED.with_suffix(".md").read_text() == classifier.to_card()
    story = f"{STORY}\n{SECOND}"
    assert classifier.score(story) > 0.9
    for damage in DAMAGES.values():
        assert np.mean([classifier.score(damage(story, Random(seed))) for seed in range(40)]) < 0.4


@pytest.mark.parametrize("text", ["word " * 50_000, "x" * 200_000, "The end. " * 2_000])
def test_no_feature_alone_makes_an_endless_line_good(text):
    assert read_classifier().score(text) < 0.01
