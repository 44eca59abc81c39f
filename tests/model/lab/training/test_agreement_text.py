"""Sentences made to teach agreement across a noun, parsed again by their lists of words."""

import re
from itertools import chain, islice, pairwise

import pytest

from headlight.model.lab.evaluation.controlled_sentences import NOUNS
from headlight.model.lab.training import agreement_text as agreement

COUNT = 4000
SINGULAR_VERBS = {"was", "is", "has been"}
PLURAL_VERBS = {"were", "are", "have been"}


@pytest.fixture(scope="module")
def made() -> list[str]:
    return list(islice(agreement.sentences(), COUNT))


def nouns() -> dict[str, int]:
    """Each noun's number: 0 singular, 1 plural."""
    pairs = (word.partition(":") for word in f"{agreement.LIVING} {agreement.THINGS}".split())
    forms = ((singular, plural or f"{singular}s") for singular, _, plural in pairs)
    return {form: number for pair in forms for number, form in enumerate(pair)}


def verbs() -> dict[str, int]:
    actions = (key.split(":") for key in [*agreement.LIVING_ACTIONS, *agreement.THING_ACTIONS])
    taught = {form: 1 - place for forms in actions for place, form in enumerate(forms)}
    return dict.fromkeys(SINGULAR_VERBS, 0) | dict.fromkeys(PLURAL_VERBS, 1) | taught


def either(words: dict[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


def parsed(sentence: str) -> tuple[int, int, int]:
    """Return the numbers of the subject, of the other noun and of the verb."""
    adjective = f"(?:(?:{'|'.join(agreement.ADJECTIVES)}) )?"
    noun = f"[Tt]he {adjective}({either(nouns())})"
    match = re.match(rf".*?\b{noun} .*?\b{noun} ({either(verbs())}) ", sentence)
    assert match, sentence
    subject, other, verb = match.groups()
    return nouns()[subject], nouns()[other], verbs()[verb]


def test_every_verb_has_the_number_of_its_subject(made: list[str]) -> None:
    numbers = [parsed(sentence) for sentence in made]

    assert all(subject == verb for subject, _, verb in numbers)
    n_differing = sum(subject != other for subject, other, _ in numbers)
    assert 0.45 < n_differing / COUNT < 0.55, "half of them show what an adjacent noun cannot"


def test_no_noun_is_one_on_which_agreement_is_measured(made: list[str]) -> None:
    measured = set(chain.from_iterable(NOUNS))

    assert not measured & set(re.findall(r"\w+", " ".join(made).lower()))


def test_a_seed_makes_the_same_sentences(made: list[str]) -> None:
    assert list(islice(agreement.sentences(), COUNT)) == made
    assert list(islice(agreement.sentences(seed=1), 20)) != made[:20]


def test_sentences_stand_before_a_share_of_the_paragraphs() -> None:
    documents = [f"{'A paragraph.' * 2}\n\n" * 2000, "The last.\n"]
    lines = list(agreement.mixed(documents))

    assert "".join(lines) == "".join(agreement.mixed(documents))
    taught = set(islice(agreement.sentences(seed=1), 1000))
    kept = [line for line in lines if line.rstrip("\n") not in taught]
    ends = agreement.END + "\n"
    assert "".join(kept) == documents[0] + ends + documents[1] + ends
    assert 0.9 < (len(lines) - len(kept)) / (agreement.SHARE * 2001) < 1.1
    few = [line for line in agreement.mixed(documents, share=0.03) if line.rstrip("\n") in taught]
    assert 0.6 < len(few) / (0.03 * 2001) < 1.4
    before_blank = [line for line, after in pairwise(lines) if after == "\n"]
    assert not taught & {line.rstrip("\n") for line in before_blank}, "each opens a paragraph"
