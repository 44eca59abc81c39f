"""The pages other than the main one, and the page written to a file."""

from playwright.sync_api import expect
from typer.testing import CliRunner

from headlight.cli import app


def test_a_call_of_the_api_is_tried_in_its_documentation(reader):
    reader.page.goto(f"{reader.url}/docs")
    call = reader.page.locator(".opblock", has_text="/api/v1/limits")
    call.locator(".opblock-summary").click()
    call.get_by_role("button", name="Try it out").click()
    call.get_by_role("button", name="Execute").click()
    expect(call.locator(".live-responses-table")).to_contain_text("max_characters")


def test_the_card_of_a_model_leads_back_to_the_page(reader):
    page = reader.page
    page.goto(f"{reader.url}/models/plain/card")
    assert page.locator("h1").text_content() == "The model: Plain"
    switch = page.locator("#theme")
    switch.get_by_role("radio", name="Dark").check()
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    expect(switch.get_by_role("radio", name="Dark")).to_be_checked()
    switch.get_by_role("radio", name="System").check()
    page.get_by_role("link", name="Use this model").click()
    reader.wait_until_drawn()
    assert page.locator("#model").input_value() == "plain"


def test_a_trace_written_to_a_page_is_drawn_without_a_network(new_context, tmp_path):
    path = tmp_path / "trace.html"
    text = "The <b>cat</b> sat, مرحبا 🐈."
    done = CliRunner().invoke(app, ["trace", text, "--device", "cpu", "--html", str(path)])
    assert done.exit_code == 0, done.output
    page = new_context(offline=True).new_page()
    errors, asked = [], []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url.split(":")[0]))
    page.goto(path.as_uri())
    page.wait_for_selector(".plot .heatmaplayer image", state="attached")
    page.locator(".heads-cell").nth(8).click()
    assert page.locator(".panel h2").inner_text() == "Layer 1, head 2"
    page.locator(".plot").focus()
    page.keyboard.press("ArrowUp")
    assert page.locator("#readout").inner_text()
    assert page.locator("#chips b, .plot b").count() == 0
    page.context.close()
    assert errors == []
    assert set(asked) <= {"file", "data", "blob"}


# An answer of a cache has no size.
N_REQUESTS = """1 + performance.getEntriesByType('resource')
    .filter(({ transferSize }) => transferSize > 0).length"""


def test_the_page_is_loaded_in_few_requests_and_again_in_five_at_most(visit):
    reader = visit()
    counts = []
    for _ in range(2):
        reader.page.goto("about:blank")
        reader.open_view("attention")
        counts.append(reader.page.evaluate(N_REQUESTS))
    assert counts[0] <= 15
    assert counts[1] <= 5
