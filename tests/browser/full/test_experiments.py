"""Every experiment on a phone, faults of server and stream, exports, wrong numbers and links."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.experiments_page import (
    EXPERIMENTS,
    SHORT,
    fragment_of,
    open_experiment,
    wait_until_drawn,
)


def test_every_experiment_is_drawn_on_a_phone_and_axe_finds_nothing(visit):
    reader = visit(width=390, height=844, color_scheme="dark", bypass_csp=True)
    by_experiment = {}
    for name in EXPERIMENTS:
        open_experiment(reader, name, **SHORT.get(name, {}))
        wider = reader.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        violations = Axe().run(reader.page).response["violations"]
        if wider or violations:
            by_experiment[name] = (
                wider,
                [(v["id"], v["nodes"][0]["html"][:200]) for v in violations],
            )
    assert by_experiment == {}


def test_a_stream_that_breaks_off_keeps_what_was_drawn(visit):
    reader = visit()
    page = reader.page
    open_experiment(reader, "balance", **SHORT["balance"])
    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_be_visible(timeout=30_000)  # it has ended
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


def test_words_and_pictures_of_a_run_that_goes_on_are_of_one_step(visit):
    reader = visit()
    reader.page.goto(f"{reader.url}/experiments#experiment=balance&steps=400")
    reader.page.locator("#view-balance .panel .main-svg").nth(10).wait_for(state="attached")
    seen = reader.page.evaluate(
        """() => new Promise((resolve) => {
          const seen = new Set();
          const look = () => {
            const view = document.querySelector('#view-balance');
            const words = [...(view?.querySelectorAll('.finding, .panel-help') ?? [])];
            const steps = words.flatMap(({ textContent }) =>
              textContent.match(/(?:After|at step) (\\d+)/)?.[1] ?? []);
            if (steps.length > 2) seen.add(steps.join(' '));
            if (seen.size > 8) resolve([...seen]); else requestAnimationFrame(look);
          };
          look();
        })"""
    )
    assert [steps for steps in seen if len(set(steps.split())) > 1] == []


def test_a_run_that_a_busy_server_refuses_is_shown_untrained(visit):
    reader = visit(allow="503")
    page = reader.page
    busy = {"type": "about:blank", "title": "Busy", "status": 503, "detail": "try again"}
    page.route(
        "**/experiments/balance",
        lambda route: (
            route.fulfill(status=503, json=busy)
            if route.request.method == "POST" and "steps" not in (route.request.post_data or "")
            else route.continue_()
        ),
    )
    open_experiment(reader, "balance")
    status = page.locator("#view-balance .run-status")
    expect(status).to_contain_text("The server is busy, so nothing is trained yet")
    expect(page.locator("#view-balance .scrubber")).to_be_hidden()


def test_knobs_and_the_end_of_a_picture_are_seen_together_on_a_phone(visit):
    reader = visit(width=390, height=844)
    for name in EXPERIMENTS:
        open_experiment(reader, name, **SHORT.get(name, {}))
        panel = reader.page.locator(f"#view-{name} .panel").last
        panel.scroll_into_view_if_needed()
        expect(reader.page.locator(f"#view-{name} .lead > .controls")).to_be_in_viewport()


def test_a_link_to_an_unknown_experiment_says_so(visit):
    reader = visit()
    reader.page.goto("about:blank")
    reader.page.goto(f"{reader.url}/experiments#experiment=alchemy")
    wait_until_drawn(reader, "by_hand")
    expect(reader.page.locator("#notice")).to_contain_text("There is no experiment “alchemy”")
    assert fragment_of(reader) == {"experiment": ["by_hand"]}
