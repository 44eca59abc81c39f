"""The page of experiments."""

from urllib.parse import parse_qs, urlencode, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

EXPERIMENTS = (
    "by_hand",
    "scaling",
    "recurrence",
    "depth",
    "learn_task",
    "balance",
    "minhash",
    "schedule",
)
SHORT = {"learn_task": {"steps": 3, "length": 3}, "balance": {"steps": 3}}


def open_experiment(reader, name, **parameters):
    """Follow a link to an experiment and wait until its pictures are drawn."""
    fragment = urlencode({"experiment": name, **parameters})
    reader.page.goto("about:blank")
    reader.page.goto(f"{reader.url}/experiments#{fragment}")
    wait_until_drawn(reader, name)


def wait_until_drawn(reader, name):
    panels = reader.page.locator(f"#view-{name} .panel")
    panels.first.locator(".main-svg").first.wait_for(state="attached")
    expect(reader.page.locator(f"#view-{name} .finding")).not_to_be_empty()
    expect(panels.locator(".is-failure:not([hidden])")).to_have_count(0)


def fragment_of(reader):
    return parse_qs(urlsplit(reader.page.url).fragment)


def finding(reader):
    return reader.page.locator(".experiment:not([hidden]) .finding")


def test_every_experiment_is_drawn_on_a_phone_and_axe_finds_nothing(visit):
    reader = visit(width=390, height=844, color_scheme="dark", bypass_csp=True)
    found = {}
    for name in EXPERIMENTS:
        open_experiment(reader, name, **SHORT.get(name, {}))
        wider = reader.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        violations = Axe().run(reader.page).response["violations"]
        if wider or violations:
            found[name] = wider, [(v["id"], v["nodes"][0]["html"][:200]) for v in violations]
    assert found == {}


def test_a_changed_parameter_is_computed_and_its_link_restores_it(visit):
    reader = visit()
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


def test_a_number_out_of_range_says_its_limit_at_the_field(visit):
    reader = visit()
    open_experiment(reader, "scaling")
    box = reader.page.get_by_label("Width", exact=True).first
    box.fill("999999")
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(reader.page.locator("#scaling-width-problem")).to_contain_text("2048")
    assert "width" not in fragment_of(reader)


def test_a_run_is_watched_and_gone_back_in_by_the_keyboard(visit):
    reader = visit()
    open_experiment(reader, "learn_task", **SHORT["learn_task"])
    page = reader.page
    run = page.get_by_role("button", name="Run", exact=True)
    run.focus()
    page.keyboard.press("Enter")
    slider = page.locator("#learn_task-frame")
    expect(slider).to_have_attribute("max", "3")
    last = finding(reader).text_content()
    slider.focus()
    page.keyboard.press("Home")
    expect(finding(reader)).not_to_have_text(last)
    assert fragment_of(reader)["frame"] == ["0"]
    assert fragment_of(reader)["run"] == ["1"]


def test_a_run_is_stopped_and_ends_when_its_panel_is_left(visit):
    reader = visit()
    open_experiment(reader, "learn_task", steps=1000)
    page = reader.page
    with page.expect_event("requestfailed") as ended:  # the browser closes the stream
        page.get_by_role("button", name="Run", exact=True).click()
        page.locator("#view-learn_task .scrubber").wait_for()
        page.get_by_role("tab", name="MinHash").click()
    assert ended.value.url.endswith("/experiments/learn_task")
    wait_until_drawn(reader, "minhash")
    page.get_by_role("tab", name="Watch it learn").click()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_visible()


def test_a_busy_server_is_asked_again_on_a_click(visit):
    reader = visit(allow="503")
    page = reader.page
    busy = {"type": "about:blank", "title": "Busy", "status": 503, "detail": "try again"}
    page.route(
        "**/experiments/depth",
        lambda route: (
            route.fulfill(status=503, json=busy)
            if route.request.method == "POST"
            else route.continue_()
        ),
    )
    page.goto(f"{reader.url}/experiments#experiment=depth")
    again = page.get_by_role("button", name="Try again")
    again.wait_for()
    page.unroute_all()
    again.click()
    wait_until_drawn(reader, "depth")
    expect(again).to_be_hidden()


def test_a_stream_that_breaks_off_keeps_what_was_drawn(visit):
    reader = visit()
    page = reader.page
    open_experiment(reader, "balance", **SHORT["balance"])
    answer = page.request.post(
        f"{reader.url}/api/v1/experiments/balance",
        data=SHORT["balance"],
        headers={"Accept": "text/event-stream"},
    ).text()
    cut = answer[: answer.rindex("event: frame")]
    page.route("**/experiments/balance", lambda route: route.fulfill(body=cut))
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    expect(page.locator("#view-balance .panel").first).to_be_visible()


def test_a_number_of_attention_by_hand_is_edited_with_the_keyboard(visit):
    reader = visit()
    open_experiment(reader, "by_hand", example="animal")
    page = reader.page
    expect(page.locator(".worked small").first).to_be_visible()
    before = finding(reader).text_content()
    first = page.locator(".worked-table", has_text="K, the keys").locator("input").first
    first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    expect(page.locator(".worked small")).to_have_count(0)
    expect(finding(reader)).not_to_have_text(before)
    assert "keys" in fragment_of(reader)


def test_the_numbers_of_a_picture_are_saved_with_their_parameters(visit, tmp_path):
    reader = visit()
    open_experiment(reader, "depth", n_layers=3)
    assert '"parameters"' in reader.save("JSON", tmp_path).read_text()
    assert "LN(x + F(x))" in reader.save("CSV", tmp_path).read_text()
    assert reader.save("SVG", tmp_path).read_text().startswith("<svg")
    assert len(reader.table()) == 6


def test_a_wrong_value_in_a_link_is_told_at_its_field_and_leaves_the_address(visit):
    reader = visit()
    open_experiment(reader, "recurrence", spectral_radius=99, length=8)
    problem = reader.page.locator("#recurrence-spectral_radius-problem")
    expect(problem).to_have_text("“99” in the link is not used: at most 2")
    assert fragment_of(reader) == {"experiment": ["recurrence"], "length": ["8"]}
    reader.page.get_by_label("Spectral radius").first.fill("0.5")
    expect(problem).to_be_empty()


def test_a_link_to_an_unknown_experiment_says_so(visit):
    reader = visit()
    reader.page.goto("about:blank")
    reader.page.goto(f"{reader.url}/experiments#experiment=alchemy")
    wait_until_drawn(reader, "by_hand")
    expect(reader.page.locator("#notice")).to_contain_text("There is no experiment “alchemy”")
    assert fragment_of(reader) == {"experiment": ["by_hand"]}


def test_a_wrong_number_in_a_table_is_told_with_the_limits(visit):
    reader = visit()
    open_experiment(reader, "by_hand")
    box = reader.page.locator(".worked-table.is-given input").first
    box.fill("abc")
    box.press("Tab")
    problem = reader.page.locator(".worked-table.is-given .field-problem").first
    expect(problem).to_have_text(
        "“abc” is not used: a number is needed, from −1,000,000 to 1,000,000."
    )
    box.fill("2")
    box.press("Tab")
    expect(reader.page.locator(".worked .field-problem:not(:empty)")).to_have_count(0)
