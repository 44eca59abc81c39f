"""The claims of examples, measured again on a part of their sentences."""

from dataclasses import replace

import numpy as np
import pytest

from headlight.lab.evaluation import agreement, examples
from headlight.lab.evaluation.agreement import agreement_figures
from headlight.lab.evaluation.examples import MEASURES, holds, measure_examples
from headlight.lab.evaluation.reasoning import digit_heads
from headlight.model import controlled_sentences
from headlight.model.arithmetic import split
from headlight.model.checkpoint.card import Example
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.tracing import trace

SUBJECT = Example(text="The boys near the tree were happy.", layer=3, head=3, claim="subject")


@pytest.fixture(scope="module")
def stories():
    return load(ZOO / "stories")


@pytest.fixture
def few(monkeypatch):
    """Every nineteenth of the made sentences: all frames and both numbers."""
    for name in ("subject_sentences", "antecedent_sentences"):
        chosen = getattr(controlled_sentences, name)()[::19]
        monkeypatch.setattr(examples, name, lambda chosen=chosen: chosen)


def claiming(checkpoint, **claimed):
    card = replace(checkpoint.description.card, examples=claimed)
    return replace(checkpoint, description=replace(checkpoint.description, card=card))


@pytest.mark.usefixtures("few")
def test_the_head_of_the_verb_looks_at_the_subject_and_not_at_the_other_noun(stories):
    (measured,) = measure_examples(claiming(stories, verb=SUBJECT), []).values()
    assert holds(measured)
    assert measured["sentences"] == 19
    rights = []
    for sentence in examples.subject_sentences():
        traced = trace(stories, sentence.text, layers=[SUBJECT.layer], heads=[SUBJECT.head])
        tokens = traced.tokens
        at = {
            place: [
                n
                for n, token in enumerate(tokens)
                if token.start < getattr(sentence, place)[1] and token.end > start
            ]
            for place in ("query", "right")
            for start in [getattr(sentence, place)[0]]
        }
        weights = traced[f"decoder.layers.{SUBJECT.layer}.self_attention.weights"][0]
        rights.append(weights[at["query"][0], at["right"]].sum())
    assert measured["score"] == pytest.approx(np.mean(rights), abs=1e-5)


@pytest.mark.usefixtures("few")
def test_a_head_looks_at_both_nouns_alike_from_the_pronoun_and_the_words_next_to_it(stories):
    head = replace(SUBJECT, layer=1, head=2)
    figures = measure_examples(
        claiming(
            stories,
            nouns=replace(head, claim="nouns"),
            antecedent=replace(head, claim="antecedent"),
        ),
        [],
    )
    assert holds(figures["nouns"])
    assert not holds(figures["antecedent"])
    on = examples.next_to_query(examples.Claim(stories, head), examples.antecedent_sentences())
    sums = {name: sum(weights) for name, weights in on.items()}
    assert figures["nouns"]["score"] == pytest.approx(np.mean([*sums.values()]))
    assert sums["word_after"] > sums["query"] / 2, "the pronoun is not what makes it look"


def test_an_expert_takes_the_commas_and_stops_of_books_by_authors_that_it_never_read(
    stories, monkeypatch
):
    monkeypatch.setattr(examples, "BOOKS", examples.BOOKS[-1:])
    example = Example(text="A cat.", layer=0, claim="punctuation_expert")
    figures = measure_examples(claiming(stories, marks=example), [])["marks"]
    assert figures["sentences"] >= 1000
    assert figures["score"] > 0.95
    assert holds(figures)


def test_a_head_that_does_not_do_it_does_not_hold(stories):
    figures = measure_examples(claiming(stories, phrase=replace(SUBJECT, claim="repetition")), [])
    assert not holds(figures["phrase"])
    head = replace(SUBJECT, layer=1, head=1, claim="repetition")
    assert holds(measure_examples(claiming(stories, phrase=head), [])["phrase"])


def test_a_head_of_sums_reads_the_digits_that_a_digit_needs(monkeypatch):
    sums = load(ZOO / "sums")
    monkeypatch.setattr(examples, "HEAD_PROBLEMS", 5)
    head = Example(text="47*23=", layer=1, head=0, claim="multiplier")
    (figures,) = measure_examples(claiming(sums, digit=head), []).values()
    assert holds(figures)
    assert figures["sentences"] == 5
    best = digit_heads(sums, split().test[:5])["multiplier"]
    assert (best["layer"], best["head"]) == (1, 0)
    assert figures["score"] == best["weight"]
    assert figures["control"] == best["evenly"]


def test_a_name_is_read_piece_by_piece(monkeypatch):
    monkeypatch.setattr(examples, "NAMES", ("Kofi", "Zeynep"))
    translator = load(ZOO / "translate")
    aligning = translator.description.card.metrics["alignment"]["head"]
    head = Example(text="Kofi.", where="cross", layer=aligning["layer"], head=aligning["head"])
    figures = measure_examples(claiming(translator, name=replace(head, claim="name")), [])
    assert holds(figures["name"])
    assert figures["name"]["sentences"] == 6


def test_a_first_guess_is_compared_with_the_commonest_token(stories):
    example = Example(text="A cat", claim="next_word")
    figures = measure_examples(claiming(stories, next=example), ["the cat and the dog. " * 30])
    assert figures["next"]["score"] > 0.5
    assert 0.15 < figures["next"]["control"] < 0.4


def test_a_share_must_be_far_above_chance():
    assert holds({"claim": "verb_across", "score": 0.8, "control": 0.5})
    assert not holds({"claim": "verb_across", "score": 0.6, "control": 0.5})


def test_an_unknown_claim_is_refused(stories):
    wrong = claiming(stories, verb=replace(SUBJECT, claim="meaning"))
    with pytest.raises(ValueError, match=f"known are {', '.join(MEASURES)}"):
        measure_examples(wrong, [])


def test_agreement_across_a_noun_is_measured_beside_its_control(stories, monkeypatch):
    items = agreement.agreement_items()[::11]
    monkeypatch.setattr("headlight.lab.evaluation.agreement.agreement_items", lambda *_: items)
    figures = agreement_figures(stories)["agreement"]
    assert figures["sentences"] == sum(not item.is_congruent for item in items) > 20
    assert 0.6 < figures["other_number"] <= 1
    assert figures["other_prepositions"] == figures["other_number"], "a decoder reads no end"
    assert figures["same_number"] > 0.9


def test_a_head_of_direct_answers_reads_the_tens_digit_at_the_equals_sign(monkeypatch):
    direct = load(ZOO / "sums-direct")
    monkeypatch.setattr(examples, "HEAD_PROBLEMS", 5)
    heads = {
        str(number): Example(text="47*23=", layer=0, head=number, claim="tens_of_multiplier")
        for number in (1, 3)
    }
    first, second = measure_examples(claiming(direct, **heads), []).values()
    assert holds(first)
    assert not holds(second)
    problem = split().test[0]
    traced = trace(direct, problem.question, layers=[0], heads=[1])
    monkeypatch.setattr(examples, "HEAD_PROBLEMS", 1)
    (alone,) = measure_examples(claiming(direct, head=heads["1"]), []).values()
    assert traced.tokens[4].text == str(problem.second)[0]
    weight = traced["decoder.layers.0.self_attention.weights"][0, 6, 4]
    assert alone["score"] == pytest.approx(float(weight), abs=1e-6)
