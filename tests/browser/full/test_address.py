"""The address: it restores the view, and going back goes back."""

from playwright.sync_api import expect

TEXT = "A & B = 100% <sure> #1? Ça va."


def test_back_and_forward_walk_through_what_was_looked_at(reader):
    reader.open(text=TEXT, layer=0, head=0)
    reader.page.locator(".heads-cell[aria-label^='Layer 1, head 1']").click()
    reader.choose_view("positions")
    reader.page.go_back()
    reader.wait_until_drawn()
    assert reader.page.locator("#view-attention").is_visible()
    assert reader.chosen_head == "Layer 1, head 1"
    reader.page.go_back()
    assert reader.chosen_head == "Layer 0, head 0"
    reader.page.go_forward()
    reader.page.go_forward()
    assert reader.page.locator("#view-positions").is_visible()


def test_what_is_typed_in_one_go_is_one_step_of_the_history(reader):
    reader.open(text="Start")
    length = reader.page.evaluate("history.length")
    reader.page.evaluate(
        """async () => {
          const box = document.querySelector('#text');
          for (const text of ['Start here', 'Start here and go on']) {
            box.value = text;
            box.dispatchEvent(new Event('input'));
            await new Promise((done) => setTimeout(done, 600));
          }
        }"""
    )
    reader.page.locator(".chip", has_text="·on").wait_for()
    assert reader.page.evaluate("history.length") == length + 1
    assert "Start+here+and+go+on" in reader.fragment
    reader.page.go_back()
    expect(reader.page.locator("#text")).to_have_value("Start")


def test_no_part_of_the_text_is_in_what_the_server_is_asked_by_address(reader):
    asked = []
    reader.page.on("request", lambda request: asked.append(request.url.split("#")[0]))
    reader.open(text="secretword")
    assert not any("secretword" in url for url in asked)
