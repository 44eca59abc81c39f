"""A server that asks for a key: the page asks its reader, once, and says what went wrong."""

import pytest
from playwright.sync_api import expect

KEY = "sesame-0123456789abcdef"
TEXT = "the cat sat on the mat"
UNAUTHORIZED = "status of 401"


@pytest.fixture(scope="module")
def guarded(start_server):
    with start_server(API_KEYS=KEY) as server:
        yield server.url


@pytest.fixture
def reader(visit, guarded):
    reader = visit(allow=UNAUTHORIZED, bypass_csp=False)
    reader.url = guarded
    reader.page.goto(f"{guarded}/#text={TEXT.replace(' ', '+')}&model=plain")
    yield reader
    reader.hosts.clear()  # it is another server that was asked


def give(reader, key):
    reader.page.get_by_label("Key", exact=True).fill(key)
    reader.page.get_by_role("button", name="Continue").click()


def test_the_key_is_asked_for_once_and_what_the_link_says_is_read(reader):
    dialog = reader.page.get_by_role("dialog", name="This server requires an API key")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_label("Key", exact=True)).to_be_focused()
    give(reader, KEY)
    reader.wait_until_drawn()
    expect(dialog).to_be_hidden()
    assert [chip.strip("·") for chip in reader.chips][1:4] == TEXT.split()[:3]
    reader.page.reload()
    reader.wait_until_drawn()
    expect(dialog).to_be_hidden()
    assert KEY not in reader.page.url


def test_a_wrong_key_is_told_and_asked_for_again(reader):
    give(reader, "wrong-0123456789abcdef")
    alert = reader.page.get_by_role("dialog").get_by_role("alert")
    expect(alert).to_have_text("The server rejected that key.")
    give(reader, "two words")
    expect(alert).to_contain_text("not a key")
    give(reader, KEY)
    reader.wait_until_drawn()


def test_who_has_no_key_can_leave_the_question_and_is_told_what_to_do(reader):
    dialog = reader.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    reader.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(reader.page.locator("#notice")).to_contain_text("operator")
