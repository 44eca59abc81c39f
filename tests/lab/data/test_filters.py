"""Languages, unwanted words and spam."""

import pytest

from headlight.lab.data.filters import LanguageFilter, SpamFilter, WordFilter, spam_signs
from headlight.model.corpus import CorpusError
from headlight.model.profiles.folder import SAMPLE

SPAM = (
    "BUY NOW!!! Cheap pills, limited offer, 90% discount! Click http://win.example to win "
    "free cash prizes!!! Order today and save $50. Subscribe: www.deals.example"
)


def test_other_languages_are_named_and_dropped():
    pytest.importorskip("py3langid")
    judge = LanguageFilter(["en"])
    assert judge.reason("The old woman looked at the sea and said that it was late.") is None
    reason = judge.reason("La vieille femme regardait la mer et disait qu'il était tard.")
    assert (reason["kind"], reason["language"]) == ("other_language", "fr")
    assert LanguageFilter(["en", "fr"]).reason("Il était une fois une petite fille.") is None
    with pytest.raises(
        ValueError, match=r"there is no language 'english'; the codes are .*, en, eo"
    ):
        LanguageFilter(["english"])


def test_unwanted_words_are_whole_words_of_any_case(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("# rude\ndarn\nold hag  # a phrase\n\n")
    judge = WordFilter.read(path)
    assert judge.reason("An OLD HAG came.") == {"kind": "unwanted_word", "word": "OLD HAG"}
    assert judge.reason("She darned a sock for the old hags.") is None
    path.write_text("# nothing\n")
    with pytest.raises(CorpusError, match="holds no word"):
        WordFilter.read(path)


def test_spam_needs_two_signs():
    judge = SpamFilter()
    assert judge.reason(SPAM)["kind"] == "spam"
    assert len(judge.reason(SPAM)["signs"]) >= 2
    assert judge.reason("Stop! Stop! Stop! cried the hare! Run!") is None
    assert all(judge.reason(story) is None for story in SAMPLE.read_text().split("\n\n"))
    assert spam_signs("") == dict.fromkeys(spam_signs("x"), 0)
