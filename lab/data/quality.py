"""The quality of a document: a calibrated logistic regression on features of its text.

The features count words, sentences and repeats and read nothing else
(`headlight.lab.data.features`). The classifier is scikit-learn's logistic regression on
standardized features, calibrated by Platt's method: its score passes through a sigmoid fitted on
folds that it was not trained on (Platt 1999). Its parameters are a JSON file; no object is pickled,
and scoring needs no scikit-learn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from headlight.lab import lab_libraries
from headlight.lab.data.damage import damaged
from headlight.lab.data.documents import Document, Unit, stream_documents
from headlight.lab.data.features import FEATURES, features_of
from headlight.model.corpus import CorpusError

LABELS = ("good", "bad")
SHIPPED = Path(__file__).parent / "quality.json"
"""The classifier that ships; its card is ``quality.md`` next to it."""

HELD_OUT = 0.2
TWINS = 0.25
MOST_DEVIATIONS = 8.0
_MOST_COMPARED = 20_000  # characters of a document
MADE = (
    "The bad documents are made, not found: the good ones with their words shuffled, cut off "
    "within a sentence, mixed with lines of web pages, with letters confused as by a scanner, "
    "repeated, wrongly decoded, with doubled quotation marks, with HTML, or without spaces. The "
    "classifier knows these faults in English prose and no others; what is true, kind or worth "
    "reading it cannot tell. Text without sentences, such as verse, lists or code, gets a low "
    "score."
)
GIVEN = "Good and bad are as the files that it was trained on have them."


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """A calibrated logistic regression: P(good) = σ(slope·(w·(x − mean)/scale + b) + offset).

    ``mean``, ``scale`` and ``weights`` (feature) are in the order of ``features``. ``figures``
    are those of `Evaluation` on the held-out part, and ``about`` says how it was made.
    """

    features: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float
    slope: float
    offset: float
    about: dict[str, Any]
    figures: dict[str, Any]

    def probability(self, features: Float[np.ndarray, "*text feature"]) -> Any:
        """Return the probability that texts with these features are good."""
        standard = (features - np.array(self.mean)) / np.array(self.scale)
        # A text unlike all others, such as one sentence of 2 MB, is not judged by one feature.
        standard = np.clip(standard, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        score = standard @ np.array(self.weights) + self.bias
        return 1 / (1 + np.exp(-np.clip(self.slope * score + self.offset, -700, 700)))

    def score(self, text: str) -> float:
        """Return the probability that a text is good."""
        return float(self.probability(features_of(text)))

    def to_json(self) -> str:
        """Return the parameters as JSON, which `read_classifier` reads."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    def to_card(self) -> str:
        """Return a card in Markdown: data, figures on the held-out part, weights."""
        figures, about = self.figures, self.about
        is_made = isinstance(about["bad"], str) and about["bad"]
        bad = about["bad"] if is_made else ", ".join(about["bad"])
        rows = {
            "good": ", ".join(about["good"]) or "none but those labelled",
            "bad": bad or "none but those labelled",
            "labelled": ", ".join(about["labelled"]) or "none",
            "unit": about["by"],
            "trained on": f"{figures['trained_documents']:,} documents",
            "held out": f"{figures['held_out_documents']:,} documents of other groups",
            "seed": figures["seed"],
            "AUC": figures["auc"],
            **{f"AUC, good against {name}": auc for name, auc in figures["auc_by_kind"].items()},
            "accuracy at 0.5": figures["accuracy"],
            "Brier score": figures["brier"],
        }
        limits = MADE if is_made else GIVEN
        weights = "".join(f"| {name} | {weight:.3f} |\n" for name, weight in coefficients(self))
        table = "".join(f"| {name} | {value} |\n" for name, value in rows.items())
        return (
            f"# A classifier of text quality\n\n{limits}\n\n"
            "A calibrated logistic regression on counts of words, sentences and repeats. A group "
            "is a whole document: no passage of a held-out book was trained on.\n\n"
            f"| | |\n|---|---|\n{table}\n"
            f"| feature | weight per standard deviation |\n|---|---|\n{weights}"
        )


def read_classifier(path: Path = SHIPPED) -> Classifier:
    """Read a classifier.

    Raises:
        ValueError: the file is missing or is not that of a classifier with these features.
    """
    try:
        members = json.loads(path.read_text(encoding="utf-8"))
        parameters: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in members.items()
        }
        classifier = Classifier(**parameters)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a classifier of this command: {error}") from error
    if classifier.features != tuple(FEATURES):
        raise ValueError(f"{path} was made with other features; train it again")
    vectors = (classifier.mean, classifier.scale, classifier.weights)
    numbers = [classifier.bias, classifier.slope, classifier.offset, *sum(vectors, ())]
    if any(len(vector) != len(FEATURES) for vector in vectors) or not all(
        isinstance(number, int | float) and math.isfinite(number) for number in numbers
    ):
        raise ValueError(f"{path} is damaged: a parameter is missing or not a finite number")
    return classifier


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """A labelled text: its features, whether it is good, its kind, and its group.

    All texts of a group, such as one book, lie in the same part of the data.
    """

    features: Float[np.ndarray, " feature"]
    is_good: bool
    kind: str
    group: str


def train_classifier(
    examples: Sequence[Labelled], *, seed: int = 0, about: dict[str, Any] | None = None
) -> Classifier:
    """Train on four fifths of the groups, calibrate, and evaluate on the rest.

    Args:
        examples: with good and bad ones.
        seed: decides the split.
        about: a description that is kept with the parameters.

    Raises:
        ValueError: there are too few groups, or all examples have the same label.
    """
    # scikit-learn takes a second to import, and scoring does without it.
    with lab_libraries():
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GroupKFold, GroupShuffleSplit
        from sklearn.preprocessing import StandardScaler

    features = np.stack([example.features for example in examples]) if examples else np.empty(0)
    labels = np.array([example.is_good for example in examples], dtype=int)
    groups = np.array([example.group for example in examples])
    n_folds = 5
    if len(set(labels.tolist())) < 2:
        raise ValueError("a classifier needs good documents and bad ones")
    if len(set(groups.tolist())) < 2 * n_folds:
        raise ValueError(
            f"a classifier needs at least {2 * n_folds} documents; there are {len(set(groups))}"
        )
    split = GroupShuffleSplit(1, test_size=HELD_OUT, random_state=seed)
    trained, held_out = next(split.split(features, labels, groups))
    scaler = StandardScaler().fit(features[trained])
    standard = scaler.transform(features[trained])
    folds = list(GroupKFold(n_folds).split(standard, labels[trained], groups[trained]))
    for part in (held_out, *(trained[part] for fold in folds for part in fold)):
        if len(set(labels[part].tolist())) < 2:
            raise ValueError(
                "a part of the labelled documents has only one label; give more documents of both"
            )
    calibrated = CalibratedClassifierCV(
        LogisticRegression(max_iter=1_000), method="sigmoid", cv=folds, ensemble=False
    ).fit(standard, labels[trained])
    (inner,) = calibrated.calibrated_classifiers_
    (platt,) = inner.calibrators
    classifier = Classifier(
        features=tuple(FEATURES),
        mean=tuple(scaler.mean_.tolist()),
        scale=tuple(scaler.scale_.tolist()),
        weights=tuple(inner.estimator.coef_[0].tolist()),
        bias=float(inner.estimator.intercept_[0]),
        slope=-float(platt.a_),  # scikit-learn's sigmoid is 1/(1 + exp(a·score + b))
        offset=-float(platt.b_),
        about=about or {},
        figures={},
    )
    kinds = [examples[number].kind for number in held_out]
    figures = evaluate_classifier(classifier, features[held_out], labels[held_out], kinds)
    return Classifier(
        **{
            **vars(classifier),
            "figures": {"trained_documents": len(trained), "seed": seed, **figures},
        }
    )


def evaluate_classifier(
    classifier: Classifier,
    features: Float[np.ndarray, "text feature"],
    labels: Int[np.ndarray, " text"],
    kinds: Sequence[str],
) -> dict[str, Any]:
    """Measure a classifier: AUC, also of the good against each kind of bad, and calibration.

    Returns:
        ``auc``, ``auc_by_kind``, ``brier`` (the mean squared error of the probability), and
        ``calibration``: by tenths of the probability, its mean and the share that is good.
    """
    from sklearn.metrics import brier_score_loss, roc_auc_score

    scores = classifier.probability(features)
    is_good = labels == 1
    named = np.array(kinds)
    tenth = np.minimum((scores * 10).astype(int), 9)
    return {
        "held_out_documents": len(labels),
        "auc": round(float(roc_auc_score(labels, scores)), 4),
        "auc_by_kind": {
            kind: round(float(roc_auc_score(labels[part], scores[part])), 4)
            for kind in sorted(set(named[~is_good].tolist()))
            if (part := is_good | (named == kind)).any()
        },
        "accuracy": round(float(((scores >= 0.5) == is_good).mean()), 4),
        "brier": round(float(brier_score_loss(labels, scores)), 4),
        "calibration": [
            {
                "probability": round(float(scores[tenth == number].mean()), 4),
                "good": round(float(labels[tenth == number].mean()), 4),
                "documents": int((tenth == number).sum()),
            }
            for number in range(10)
            if (tenth == number).any()
        ],
    }


def read_examples(
    good: Sequence[Path],
    bad: Sequence[Path],
    labelled: Sequence[Path],
    unit: Unit = "document",
    seed: int = 0,
    on_document: Callable[[Document], object] = lambda document: None,
) -> Iterator[Labelled]:
    """Read labelled documents and measure their features.

    Args:
        good: files of good documents. If nothing else is given, the bad ones are made from them
            by `headlight.lab.data.damage`, and half of the good ones are shortened to some of
            their paragraphs, so that the length does not tell one from the other.
        bad: files of bad documents.
        labelled: files of JSON lines with a member ``label``, ``"good"`` or ``"bad"``.
        unit: as `stream_documents`.
        seed: decides the damage.
        on_document: called with each document that was read.

    Raises:
        CorpusError: as `stream_documents`, or a line has no label.
    """
    is_made = not (bad or labelled)
    for number, document in enumerate(_stream(good, unit, on_document)):
        text = document.text
        if is_made:
            kind, worse = damaged(text, seed, number)
            yield _labelled(worse, kind, document)
            text = _shortened(text, Random(f"{seed} {number} good"))  # nosec B311
        yield _labelled(text, "good", document)
    for document in _stream(bad, unit, on_document):
        yield _labelled(document.text, "bad", document)
    for document in _stream(labelled, unit, on_document):
        label = document.members.get("label")
        if label not in LABELS:
            place = f"{document.place.path}, line {document.place.line}"
            raise CorpusError(f'{place} has no member "label" with "good" or "bad"; add it')
        yield _labelled(document.text, label, document)


def _stream(
    paths: Sequence[Path], unit: Unit, on_document: Callable[[Document], object]
) -> Iterator[Document]:
    for document in stream_documents(paths, unit) if paths else ():
        on_document(document)
        yield document


def _labelled(text: str, kind: str, document: Document) -> Labelled:
    return Labelled(
        features=features_of(text), is_good=kind == "good", kind=kind, group=document.whole
    )


def _shortened(text: str, random: Random) -> str:
    """Return the text, or every second time some of its paragraphs."""
    lines = text.splitlines()
    if random.random() < 0.5:
        return text
    start = random.randrange(len(lines))
    return "\n".join(lines[start : start + random.randint(1, len(lines))])


class Extremes:
    """The best and the worst documents of a stream, no two of which are near-twins.

    Twins have a Jaccard similarity of at least `TWINS` of their runs of three words; of two the
    earlier is kept, or the one that is better or worse.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.best: list[dict[str, Any]] = []
        self.worst: list[dict[str, Any]] = []
        self._runs: dict[str, frozenset[tuple[str, ...]]] = {}

    def add(self, score: float, source: str, text: str) -> None:
        """Offer a document; ties keep the earlier one."""
        score = round(score, 4)
        for items, sign in ((self.best, -1), (self.worst, 1)):
            if len(items) == self._size and sign * score >= sign * items[-1]["score"]:
                continue
            runs = _runs(text)
            twins = [item for item in items if _are_twins(self._runs[item["source"]], runs)]
            if any(sign * item["score"] <= sign * score for item in twins):
                continue
            for item in twins:
                items.remove(item)
            items.append({"score": score, "source": source, "text": _excerpt(text)})
            self._runs[source] = runs
            items.sort(key=lambda item: sign * item["score"])
            del items[self._size :]
        shown = {item["source"] for item in (*self.best, *self.worst)}
        self._runs = {source: runs for source, runs in self._runs.items() if source in shown}


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    words = text[:_MOST_COMPARED].lower().split()
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset({tuple(words)})


def _are_twins(first: frozenset[tuple[str, ...]], second: frozenset[tuple[str, ...]]) -> bool:
    common = len(first & second)
    return common >= TWINS * (len(first) + len(second) - common)


def _excerpt(text: str) -> str:
    """Return the beginning and the end of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= 240 else f"{line[:160]} … {line[-70:]}"


def coefficients(classifier: Classifier) -> Iterable[tuple[str, float]]:
    """Return the weight of each standardized feature, the largest first."""
    pairs = zip(classifier.features, classifier.weights, strict=True)
    return sorted(pairs, key=lambda pair: -abs(pair[1]))
