"""The offline page: one file, everything in it, nothing that a text could break out of."""

import base64
import json
import re

import pytest

from headlight.client import read_trace
from headlight.commands.export import ENTRY, modules, offline_page

HOSTILE = "<b>the</b> </script><script>alert(1)</script> <!-- {{ text }} & cat"
IMPORTED = re.compile(
    r"""(?:^(?:import|export)(?:\b[^;'"=(]*\bfrom)? |\bawait import\()['"]([^'"]+)['"]""",
    re.MULTILINE,
)


def page_of(client, text, **options):
    headers = {"accept": "application/x-safetensors"}
    asked = {"text": text, "analyses": ["head_labels"]}
    answer = client.post("/api/v1/trace", json=asked, headers=headers).content
    card = client.get("/api/v1/models/tiny").json()
    return answer, offline_page(answer, card, read_trace(answer), **options)


def element(page, name):
    (found,) = re.findall(rf'<script type="[^"]+" id="{name}">(.*?)</script>', page, re.DOTALL)
    return found


@pytest.fixture(scope="module")
def hostile(client):
    return page_of(client, HOSTILE)


def test_the_page_holds_the_answer_of_the_api(hostile, client):
    answer, page = hostile
    assert base64.b64decode(element(page, "answer")) == answer
    assert json.loads(element(page, "model")) == client.get("/api/v1/models/tiny").json()


def test_no_text_becomes_markup(hostile):
    _, page = hostile
    assert "alert(1)" not in page.replace("&lt;script&gt;alert(1)&lt;/script&gt;", "")
    assert "<title>&lt;b&gt;the&lt;/b&gt; " in page
    assert "{{" not in page[: page.index('<script type="importmap">')].replace("{{ text }}", "")


def test_nothing_is_loaded_from_elsewhere(hostile):
    _, page = hostile
    head = page[: page.index('<script type="importmap">')]
    assert "default-src 'none'; script-src 'unsafe-inline' data:;" in head
    assert re.findall(r"""(?:src|href)=["'](?!data:)""", head) == []
    assert "@import" not in head


def test_the_edits_of_the_pass_are_shown(client):
    _, page = page_of(client, "the cat", edits=[{"kind": "no_scaling"}])
    assert "Changed in this pass: <code>[{&#34;kind&#34;: &#34;no_scaling&#34;}]</code>" in page


def test_every_import_has_its_module():
    found = modules()
    assert ENTRY in found
    named = {name for text in found.values() for name in IMPORTED.findall(text)}
    assert named == set(found) - {ENTRY}
