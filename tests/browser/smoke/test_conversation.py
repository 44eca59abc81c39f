"""A conversation on the page: roles on the maps, on the model's map and in a saved page."""

import pytest
from playwright.sync_api import expect

pytest.importorskip("transformers", reason="the extra hf is not installed")

from tests.browser.conftest import ONE_THREAD, SECONDS
from tests.model.foreign.test_chat import TEMPLATE
from tests.server_process import serving
from tests.tiny_checkpoints import save_checkpoint

CHAT = '[{"role":"system","content":"The dog"},{"role":"user","content":"Sat by the door."}]'
BANDS = "rgb(47, 127, 208)"


@pytest.fixture(scope="module")
def talker(new_reader, tmp_path_factory):
    folder = tmp_path_factory.mktemp("chat")
    save_checkpoint("gpt2", folder / "talker")
    (folder / "talker" / "chat_template.jinja").write_text(TEMPLATE)
    with serving("--models-dir", folder, environment=ONE_THREAD) as server:
        reader = new_reader()
        reader.url = server.url
        yield reader


def test_a_conversation_has_bands_of_roles_and_each_heads_share_of_one(talker):
    talker.open(model="talker", chat=CHAT, view="attention", layer="1", head="0", map="user")
    talker.wait_until_plotted()
    page = talker.page
    roles = page.locator("#chips [data-role], .chip[data-role]")
    assert {"system", "user", "template"} <= set(
        roles.evaluate_all("all => all.map((each) => each.dataset.role)")
    )
    bands = page.locator(f'.main-svg path[style*="fill: {BANDS}"]')
    bands.first.wait_for(state="attached", timeout=SECONDS * 1000)
    expect(page.locator(".map-key")).to_contain_text("attention on user")
    label = page.locator("#map [data-part='head decoder 1 0']").get_attribute("aria-label")
    assert "of its attention to user" in label
    talker.open(model="talker", chat=CHAT, view="head", layer="1", head="0")
    talker.wait_until_plotted()
    expect(page.locator(".panel", has_text="Attention by role").first).to_be_visible()
    assert talker.errors == []


def test_a_saved_page_of_a_conversation_opens_with_its_roles(talker, tmp_path, new_reader):
    said = [{"role": "user", "content": "Sat by the door."}]
    answer = talker.page.request.post(
        f"{talker.url}/api/v1/page", data={"model": "talker", "messages": said}
    )
    assert answer.ok, answer.text()
    file = tmp_path / "chat.html"
    file.write_bytes(answer.body())
    saved = new_reader()
    saved.page.goto(f"{file.as_uri()}#view=head&layer=1&head=0")
    saved.wait_until_plotted()
    expect(saved.page.locator(".panel", has_text="Attention by role").first).to_be_visible()
    assert saved.page.locator('.chip[data-role="user"]').count() > 0
    assert saved.errors == []
