"""Rules over many texts, against single passes of models that ship."""

import numpy as np
import pytest

from headlight import load, trace
from headlight.chapters.chapter import ChapterError, read_chapter
from headlight.chapters.check import Checker
from headlight.chapters.many import Many, Passes
from headlight.chapters.outcomes import Ask, Opens
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.schemas.traces import TraceRequest
from headlight.settings import Settings

NOUNS = "keys dogs boys girls horses birds kings flowers"
OTHERS = "cabinet river house garden tree barn table"
AGREEMENT = {
    "text": "The {noun} near the {other}",
    "words": {"noun": NOUNS, "other": OTHERS.split()},
    "next": " were",
    "than": " was",
}
TEXTS = [f"The {noun} near the {other}" for noun in NOUNS.split() for other in OTHERS.split()]


@pytest.fixture(scope="module")
def stories():
    return load("stories")


@pytest.fixture(scope="module")
def passes(stories):
    return Passes(lambda _: stories)


@pytest.fixture(scope="module")
def traces(stories):
    capture = ["logits", "*.3.self_attention.weights", "*.0.experts.router_probs"]
    return [trace(stories, text, capture=capture) for text in TEXTS]


def measured(passes, number, **members):
    return (
        Many(of="many", number=number, **{**AGREEMENT, **members}).measured(Opens(), passes).right
    )


def test_bets_are_those_of_single_passes(stories, passes, traces):
    were, was = (stories.tokenizer.encode(text)[-1].id for text in (" were", " was"))
    logits = np.array([each.tensors["logits"].data[-1] for each in traces], dtype=np.float64)
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    assert measured(passes, "probability") == pytest.approx(shares[:, were].mean(), rel=1e-4)
    assert measured(passes, "right") == (logits.argmax(-1) == were).mean()
    assert measured(passes, "ahead") == (logits[:, were] > logits[:, was]).mean()


def test_weights_are_those_of_single_passes(passes, traces):
    cells, rows, before = [], [], []
    for each in traces:
        weights = each.tensors["decoder.layers.3.self_attention.weights"].data[3]
        key = [token.text for token in each.tokens].index(" near") - 1
        cells.append(weights[-1, key])
        rows.append(weights[-1].argmax() == key)
        before.append(np.diag(weights, -1)[2:].mean())
    where = {"layer": 3, "head": 3}
    told = measured(passes, "weight", key="{noun}", **where)
    assert told == pytest.approx(np.mean(cells), rel=1e-4)
    assert measured(passes, "reads", key="{noun}", **where) == np.mean(rows)
    assert measured(passes, "previous", **where) == pytest.approx(np.mean(before), rel=1e-4)


def test_experts_are_those_of_single_passes(passes, traces):
    sent = [
        each.tensors["decoder.layers.0.experts.router_probs"].data[1].argmax() for each in traces
    ]
    (expert,) = {int(each) for each in sent}
    assert measured(passes, "expert", layer=0, query="The", expert=expert) == 1
    assert measured(passes, "expert", layer=0, query="The", expert=(expert + 1) % 8) == 0


def test_a_head_is_switched_off_in_every_text(stories, passes):
    were, was = (stories.tokenizer.encode(text)[-1].id for text in (" were", " was"))
    off = [HeadAblation(layer=3, heads=(3,))]
    ahead = [
        logits[were] > logits[was]
        for text in TEXTS
        for logits in [
            trace(stories, text, capture="logits", interventions=off).tensors["logits"].data[-1]
        ]
    ]
    without = measured(passes, "ahead", off=[{"layer": 3, "heads": [3]}])
    assert without == np.mean(ahead) < measured(passes, "ahead")


def test_products_are_read_to_the_last_digit():
    sums = load("sums")
    passes = Passes(lambda _: sums)
    given = {"of": "many", "rows": "problems", "text": "{a}*{b}={a}*{tens}+{a}*{ones}="}
    first = Many(number="right", next="{first}", **given)
    assert len(first.blanks) == 100
    assert all(int(row["a"]) * int(row["b"]) == int(row["sum"]) for row in first.blanks)
    assert first.measured(Opens(), passes).right > 0.95
    assert Many(number="right", next="{second}", **given).measured(Opens(), passes).right < 0.1


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"words": {"noun": "keys", "other": OTHERS}}, "needs 50 texts; the blanks give 7"),
        ({"words": {name: [*map(str, range(99))] for name in "abc"}}, "at most 20,000"),
        ({"number": "ahead", "than": ""}, "ahead needs `than`"),
        ({"number": "right", "next": ""}, "right needs `next`"),
        ({"number": "weight", "layer": 0, "head": 0}, "weight needs a key"),
        ({"number": "start"}, "start is one of a head"),
        ({"text": ""}, "needs a text"),
    ],
)
def test_a_rule_over_many_texts_is_complete(members, said):
    with pytest.raises(ValueError, match=said):
        Many(**{"of": "many", "number": "probability", **AGREEMENT, **members})


CHAPTER = """---
title: A title
texts:
  plural:
    text: "The {noun} near the {other}"
    words:
      noun: keys dogs boys girls horses birds kings flowers
      other: cabinet river house garden tree barn table
    next: " were"
    than: " was"
---

## A step

```step
opens: {model: stories, text: "The keys near the river"}
claims:
  - {rule: {of: many, texts: plural, number: ahead}, above: 0.9}
  - {rule: {of: many, texts: plural, number: ahead}, below: 0.5}
  - {rule: {of: many, texts: singular, number: ahead}, below: 0.5}
  - {rule: {of: many, texts: plural, number: weight, layer: 3, head: 3, key: "{verb}"}, below: 0.5}
```
"""


def test_a_claim_about_a_model_that_does_not_hold_is_a_fault_in_its_line():
    (finding,) = Checker(Settings()).check(read_chapter(CHAPTER, "a.md", "a"), [])
    lines, said = zip(*finding.faults, strict=True)
    assert lines == (19, 20, 21)
    assert "says below 0.5, and it is" in said[0]
    assert "there are no texts 'singular'; there are plural" in said[1]
    assert "'verb' has no words" in said[2]


def test_an_unknown_kind_of_claim_is_a_fault():
    with pytest.raises(ChapterError, match="of"):
        read_chapter(CHAPTER.replace("of: many", "of: money"), "a.md", "a")


def test_the_share_of_a_part_is_that_of_its_score_attribution(stories, passes, monkeypatch):
    cell = {"attention": "decoder.layers.1.self_attention", "head": 1, "query": 12, "key": 3}
    text = "The red fox ran. The blue dog sat. The red"
    asked = TraceRequest(
        text=text,
        model="stories",
        capture=[],
        analyses=["score_attribution"],
        score_attribution=cell,
    )
    made = Checker(Settings()).answer(Ask(trace=asked))["analyses"]["score_attribution"]
    names = [part["name"] for part in made["key_parts"]]
    expected = made["key_side"]["data"][names.index("0.1")] / made["score"]
    members = {"layer": 1, "head": 1, "query": 12, "key": 3, "part": "0.1"}
    monkeypatch.setattr(Many, "_filled", lambda *_: [text])
    assert measured(passes, "fed", **members) == pytest.approx(expected, rel=1e-4)
    del members["part"]
    assert measured(passes, "weight", **members) > 0.8
    assert measured(passes, "weight", **members, cut=["0.1→1.1.k"]) < 0.05
    with pytest.raises(ValueError, match=r"no part '9\.9'"):
        measured(passes, "fed", **{**members, "part": "9.9"})
