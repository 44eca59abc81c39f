"""The tour: a newcomer goes through it, or leaves it at once."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

TEXT = "Once upon a time there was a little fox."
OVERLAP = """() => {
  const [card, ring] = ['.tour', '.tour-ring'].map((name) =>
    document.querySelector(name).getBoundingClientRect());
  const isOn = card.left >= 0 && card.top >= 0 && card.right <= innerWidth
    && card.bottom <= innerHeight;
  const isSeen = ring.bottom > 0 && ring.top < innerHeight && ring.width > 20;
  return { isOn, isSeen };
}"""


def start(reader, **fragment):
    reader.open(**{"text": TEXT, **fragment})
    reader.press_in_menu("Tour of the page")
    card = reader.page.get_by_role("dialog")
    card.wait_for()
    return card


def test_it_goes_through_the_page_and_back_to_where_it_began(reader):
    card = start(reader, layer=0, head=5)
    count = int(card.locator(".tour-progress").text_content().split(" of ")[1])
    titles, views = [], []
    for number in range(1, count + 1):
        expect(card.locator(".tour-progress")).to_have_text(f"{number} of {count}")
        assert reader.page.evaluate(OVERLAP) == {"isOn": True, "isSeen": True}
        assert reader.page.evaluate("document.activeElement.id") == "tour-title"
        titles.append(card.locator("h2").text_content())
        views.append(reader.view.get_attribute("id"))
        card.locator(".is-next").click()
    assert len(set(titles)) == count >= 6
    assert len(set(views)) >= 3
    assert not card.is_visible()
    assert reader.page.evaluate("document.activeElement.id") == "more"


def test_it_goes_by_keys_and_escape_leaves_it(reader):
    card = start(reader)
    reader.page.keyboard.press("ArrowRight")
    assert card.locator("h2").text_content() == "What comes next, and why"
    reader.page.keyboard.press("ArrowLeft")
    assert card.locator("h2").text_content() == "Type a sentence"
    reader.page.keyboard.press("Tab")
    assert reader.page.evaluate("document.activeElement.textContent") == "Leave"
    reader.page.keyboard.press("Escape")
    assert not card.is_visible()
    assert not reader.page.locator(".tour-ring").is_visible()


def test_it_never_begins_by_itself_and_is_remembered(reader):
    reader.open(text=TEXT)
    button = reader.page.locator("#tour")
    assert not reader.page.get_by_role("dialog").is_visible()
    assert "is-new" in button.get_attribute("class")
    reader.press_in_menu("Tour of the page")
    reader.page.keyboard.press("Escape")
    reader.page.reload()
    reader.wait_until_drawn()
    assert "is-new" not in button.get_attribute("class")


def test_axe_finds_nothing_wrong_with_it(visit):
    reader = visit(bypass_csp=True)
    start(reader)
    violations = Axe().run(reader.page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in violations] == []
