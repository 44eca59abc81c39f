"""Every example of every model opens with a finding, which is computed from its trace."""

import re

import pytest
from playwright.sync_api import expect

from headlight.model.checkpoint.card import read_card
from headlight.model.checkpoint.loading import ZOO

EXAMPLES = {
    path.name: list(read_card(path / "CARD.md").examples)
    for path in sorted(ZOO.glob("[!_.]*"))
    if path.is_dir()
}
# Of some examples, the words that their finding must name: computed, so they could be missing.
NAMES = {
    ("stories", "A verb and its subject"): ["keys", "were", "was"],
    ("stories", "A head that looks at nouns"): ["king"],
    ("stories", "An expert for commas and stops"): ["expert"],
    ("stories", "Singular or plural"): ["girl", "was", "is"],
    ("translate", "Words that change places"): ["chat", "noir", "change places"],
    ("stories-reward", "An answer that keeps the rule"): ["reward"],
    ("fill", "Two blanks"): ["time", "second mask"],
}


@pytest.mark.parametrize("model", EXAMPLES)
def test_every_example_opens_with_a_finding(visit, model):
    reader = visit()
    reader.open(model=model)
    for place, title in enumerate(EXAMPLES[model]):
        reader.page.locator("#examples button").nth(place).click()
        reader.wait_until_drawn()
        expect(reader.page.locator("#finding")).not_to_have_class(re.compile("is-waiting"))
        told = reader.page.locator("#says, #insight").all_text_contents()
        found = " ".join([*told, answer_of(reader)]).strip()
        assert re.search(r"“[^”]+”|expert \d", found), f"'{title}' says nothing: {found!r}"
        assert "·" not in found, "a word in a sentence has no sign for its space"
        for word in NAMES.get((model, title), []):
            assert word in found, f"'{title}' does not name {word}: {found!r}"


def answer_of(reader):
    answer = reader.view.locator(".answer")
    return answer.text_content() if answer.is_visible() else ""
