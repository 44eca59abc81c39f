"""The page of experiments."""

from playwright.sync_api import expect

from tests.browser.experiments_page import (
    EXPERIMENTS,
    SHORT,
    finding,
    fragment_of,
    open_experiment,
    wait_until_drawn,
)


def test_the_tabs_and_a_status_are_there_before_the_experiment(reader):
    page = reader.page
    held = []
    page.route("**/experiments/scaling", lambda route: held.append(route), times=1)
    page.goto("about:blank")
    page.goto(f"{reader.url}/experiments#experiment=scaling")
    expect(page.get_by_role("tab")).to_have_count(len(EXPERIMENTS))
    expect(page.locator("#loading")).to_be_visible()
    expect(page.locator("#main")).to_have_attribute("aria-busy", "true")
    held[0].continue_()
    wait_until_drawn(reader, "scaling")
    expect(page.locator("#loading")).to_be_hidden()
    expect(page.locator("#main")).to_have_attribute("aria-busy", "false")


def test_a_changed_parameter_is_computed_and_its_link_restores_it(reader):
    open_experiment(reader, "scaling")
    before = finding(reader).text_content()
    reader.page.get_by_label("Width", exact=True).first.fill("16")
    expect(finding(reader)).not_to_have_text(before)
    assert fragment_of(reader)["width"] == ["16"]
    after, link = finding(reader).text_content(), reader.page.url
    reader.page.goto("about:blank")
    reader.page.goto(link)
    wait_until_drawn(reader, "scaling")
    expect(finding(reader)).to_have_text(after)


def test_a_run_starts_by_itself_and_is_gone_back_in_by_the_keyboard(reader):
    open_experiment(reader, "learn_task", **SHORT["learn_task"])
    page = reader.page
    slider = page.locator("#learn_task-frame")
    expect(slider).to_have_attribute("max", "3", timeout=30_000)
    last = finding(reader).text_content()
    slider.focus()
    page.keyboard.press("Home")
    expect(finding(reader)).not_to_have_text(last)
    assert fragment_of(reader)["frame"] == ["0"]
    run = page.get_by_role("button", name="Run", exact=True)
    run.focus()
    page.keyboard.press("Enter")
    expect(finding(reader)).to_have_text(last)
    assert "frame" not in fragment_of(reader)


def test_a_run_is_stopped_and_ends_when_its_panel_is_left(reader):
    page = reader.page
    with page.expect_event("requestfailed") as ended:  # the browser closes the stream
        open_experiment(reader, "learn_task", steps=1000)
        page.locator("#view-learn_task .scrubber").wait_for()
        page.get_by_role("tab", name="MinHash").click()
    assert ended.value.url.endswith("/experiments/learn_task")
    wait_until_drawn(reader, "minhash")
    page.get_by_role("tab", name="Watch it learn").click()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_visible()


def test_a_number_of_attention_by_hand_is_edited_with_the_keyboard(reader):
    open_experiment(reader, "by_hand", example="animal")
    page = reader.page
    printed = page.locator(".worked small:not(:empty)")
    expect(printed.first).to_have_text("printed 0.35")
    before = finding(reader).text_content()
    first = page.locator(".worked-table", has_text="K, the keys").locator("input").first
    first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    expect(printed).to_have_count(0)
    expect(finding(reader)).not_to_have_text(before)
    assert "keys" in fragment_of(reader)
    weight = page.get_by_role("textbox", name="Weights, it, animal")
    weight.fill("0.5")
    weight.press("Tab")
    expect(finding(reader)).to_contain_text("as you typed it")
    assert "weights" in fragment_of(reader)
    context = page.get_by_role("textbox", name="Context, it, v1")
    context.fill("0.678")
    context.press("Tab")
    expect(page.locator(".worked small:not(:empty)")).to_contain_text("the formula gives")
    assert "context" in fragment_of(reader)


def test_a_wrong_value_in_a_link_is_told_at_its_field_and_leaves_the_address(reader):
    open_experiment(reader, "recurrence", spectral_radius=99, length=8, frame=3, radius=1)
    said = reader.page.locator("#view-recurrence .link-notice")
    expect(said).to_contain_text("“3” in the link is ignored: this experiment has no frames")
    expect(said).to_contain_text("“radius” in the link is ignored: no such parameter")
    expect(said).to_contain_text("“99” in the link is ignored: at most 2")
    problem = reader.page.locator("#recurrence-spectral_radius-problem")
    expect(problem).to_have_text("“99” in the link is ignored: at most 2")
    assert fragment_of(reader) == {"experiment": ["recurrence"], "length": ["8"]}
    reader.page.get_by_label("Spectral radius").first.fill("0.5")
    expect(problem).to_be_empty()
