"""Sentences made to teach agreement across a noun, parsed again by their lists of words."""

import re
from itertools import chain, islice, pairwise

import pytest

from headlight.lab.evaluation.agreement import UNSEEN_ENDS, UNSEEN_PREPOSITIONS, unseen_items
from headlight.lab.training import agreement_text as agreement
from headlight.model.controlled_sentences import NOUNS

COUNT = 4000
BOOK = "The cat was in the hall. The dogs were fast asleep, and he was a boy.\n"


@pytest.fixture(scope="module")
def made() -> list[str]:
    return list(islice(agreement.sentences(), COUNT))


def nouns() -> dict[str, int]:
    """Each noun's number: 0 singular, 1 plural; without those whose two forms are one."""
    pairs = (word.partition(":") for word in f"{agreement.LIVING} {agreement.THINGS}".split())
    forms = ((singular, plural or f"{singular}s") for singular, _, plural in pairs)
    return {form: number for pair in forms if len({*pair}) == 2 for number, form in enumerate(pair)}


def verbs() -> dict[str, int]:
    taught = dict(chain.from_iterable(zip(pair, (0, 1), strict=True) for pair in agreement.VERBS))
    actions = (
        key.split(":")
        for key in [*agreement.WORDS["living_actions"], *agreement.WORDS["thing_actions"]]
    )
    return taught | {form: 1 - place for forms in actions for place, form in enumerate(forms)}


def either(words) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


def parsed(sentence: str) -> tuple[int, int] | None:
    """Return the numbers of the subject and of the verb; None if the sentence has another form."""
    listed = agreement.LISTED
    determiners = [*listed["any_number"], *listed["one"], "an", *listed["several"]]
    determiner = either(word.replace("_", " ") for word in determiners)
    opening = either(agreement.OPENINGS)
    phrase = f"(?:{determiner}) (?:(?:{'|'.join(listed['adjectives'])}) )?({either(nouns())})"
    match = re.match(rf"(?:{opening})?{phrase}\b.*? ({either(verbs())}) [^.]+\.$", sentence, re.I)
    return match and (nouns()[match[1]], verbs()[match[2]])


def test_every_verb_has_the_number_of_its_subject(made: list[str]) -> None:
    first = [parsed(sentence) for sentence in made]
    numbers = [pair for pair in first if pair]

    assert len(numbers) > 0.8 * COUNT
    assert all(subject == verb for subject, verb in numbers)
    assert 0.4 < sum(verb for _, verb in numbers) / len(numbers) < 0.6


def test_no_word_is_one_on_which_agreement_is_measured(made: list[str]) -> None:
    text = " ".join(made).lower()
    measured = {*chain.from_iterable(NOUNS), *chain.from_iterable(agreement.test_nouns())}

    assert len(agreement.test_nouns()) > 20
    assert not measured & set(re.findall(r"\w+", text))
    assert not any(f"{end} " in f"{text} " for end in UNSEEN_ENDS)
    for phrase in ("away from", "far from", "from here", "from another", "from the city"):
        text = text.replace(phrase, "")
    assert not any(f" {preposition} " in text for preposition in UNSEEN_PREPOSITIONS)


def test_words_of_the_measurement_have_both_numbers_equally_often() -> None:
    items = unseen_items()

    assert sum(item.is_congruent for item in items) == len(items) / 2
    assert sum(item.right == "was" for item in items) == len(items) / 2
    assert len({item.beginning for item in items}) == len(items)


def test_ends_are_what_follows_the_verb_in_the_text() -> None:
    ends = agreement.ends_of([BOOK])

    assert ends == {"was": ["in the hall"], "were": ["fast asleep"]}
    assert any(
        sentence.endswith("were fast asleep.")
        for sentence in islice(agreement.sentences(0, ends), 200)
    )


def test_a_seed_makes_the_same_sentences(made: list[str]) -> None:
    assert list(islice(agreement.sentences(), COUNT)) == made
    assert list(islice(agreement.sentences(seed=1), 20)) != made[:20]


def test_sentences_stand_before_a_share_of_the_paragraphs() -> None:
    documents = [f"{'A paragraph.' * 2}\n\n" * 2000, "The last.\n"]
    lines = list(agreement.mixed(documents))

    assert "".join(lines) == "".join(agreement.mixed(documents))
    taught = set(islice(agreement.sentences(1, agreement.ends_of(documents)), 1000))
    kept = [line for line in lines if line.rstrip("\n") not in taught]
    ends = agreement.END + "\n"
    assert "".join(kept) == documents[0] + ends + documents[1] + ends
    assert 0.9 < (len(lines) - len(kept)) / (agreement.SHARE * 2001) < 1.1
    few = [line for line in agreement.mixed(documents, share=0.03) if line.rstrip("\n") in taught]
    assert 0.6 < len(few) / (0.03 * 2001) < 1.4
    before_blank = [line for line, after in pairwise(lines) if after == "\n"]
    assert not taught & {line.rstrip("\n") for line in before_blank}, "each opens a paragraph"


def test_nouns_of_texts_have_both_numbers_and_are_not_measured() -> None:
    text = "She had a lantern, and the lanterns shone. He saw a king, the kings, a lamp.\n"

    assert agreement.nouns_of([text] * 5) == [("lantern", "lanterns")]
    assert agreement.nouns_of([text] * 4) == []


def test_varied_sentences_have_no_word_of_the_measurement() -> None:
    found = [("lantern", "lanterns")]
    text = " ".join(islice(agreement.sentences(0, None, found), COUNT)).lower()
    measured = {*chain.from_iterable(NOUNS), *chain.from_iterable(agreement.test_nouns())}
    words = set(re.findall(r"\w+", text))
    taught = [*agreement.PREPOSITIONS, *agreement.RARE_PREPOSITIONS]

    assert {noun for pair in NOUNS for noun in pair} <= {
        noun for pair in agreement.MEASURED for noun in pair
    }
    assert {"lantern", "lanterns"} <= words
    assert measured & words == {"house"}  # in "in the house of", as the card says
    assert not {each.replace("_", " ") for each in taught} & set(UNSEEN_PREPOSITIONS)
    assert " on the edge of " not in text
