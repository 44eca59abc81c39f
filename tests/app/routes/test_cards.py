"""GET /models/{id}/card: a model's card for people."""

import re
from dataclasses import replace
from html import unescape

import pytest

from headlight.model.checkpoint.card import read_card, write_card
from headlight.model.checkpoint.loading import ZOO
from headlight.models.cards import prose_of

MODELS = sorted(path.name for path in ZOO.iterdir() if path.is_dir())


@pytest.fixture
def shipped(client_with):
    return client_with(zoo_dir=ZOO, default_model="stories")


def test_every_shipped_models_card_can_be_read(shipped):
    for model in MODELS:
        response = shipped.get(f"/models/{model}/card")
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("text/html")
        text, card = response.text, read_card(ZOO / model / "CARD.md")
        assert f"<h1>The model: {card.title}</h1>" in text
        headings = re.findall(r"^##? (.+)$", card.prose, re.MULTILINE)
        assert len(headings) > 3
        for heading in headings:
            assert re.search(rf"<h[23]>{re.escape(heading)}</h[23]>", text), heading
        assert re.search(r"<th>figure</th>\s*<th>value</th>", text)
        assert f'#model={model}"' in text


def test_tags_pictures_and_scripts_of_a_card_stay_text(client_with, zoo, tmp_path):
    folder = tmp_path / "strange"
    folder.mkdir()
    for file in (zoo / "tiny").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    prose = "<script>alert(1)</script>\n\n![a](https://x.test/a.png) [b](javascript:alert(2))"
    card = replace(read_card(folder / "CARD.md"), title="<b>Strange</b>", prose=prose)
    write_card(folder / "CARD.md", card)
    text = client_with(models_dir=tmp_path).get("/models/strange/card").text
    assert "<h1>The model: &lt;b&gt;Strange&lt;/b&gt;</h1>" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert text.count("<script>") == 1, "the theme"
    assert 'src="https://' not in text
    assert 'href="javascript:' not in text


def test_headings_stand_one_step_below_the_pages():
    assert prose_of("# A\n\n## B\n\n###### F\n") == "<h2>A</h2>\n<h3>B</h3>\n<h6>F</h6>\n"


def test_a_model_that_is_not_there_has_no_card(client, problem):
    problem(client.get("/models/none/card"), 404, "unknown-model")


def test_each_command_of_a_training_is_on_its_own_line(shipped):
    command = read_card(ZOO / "translate" / "CARD.md").training["command"]
    page = unescape(shipped.get("/models/translate/card").text)
    assert len(command.split(" && ")) > 1
    assert all(f"<span>{part}</span>" in page for part in command.split(" && "))
