"""The view Generate: a text written on by mouse and by keyboard, stopped, and gone back on."""

import json
import re

import httpx
import pytest

TEXT = "Once upon a time"
VIEW = {"text": TEXT, "view": "generate"}
DRAWING = {"temperature": 0.8, "top_p": 0.9, "seed": 0}


@pytest.fixture
def written(url):
    """Return the API's events of the tokens that it writes after the text."""

    def ask(n_tokens, text=TEXT, model="stories", **options):
        body = {"model": model, "text": text, "n_tokens": n_tokens, **DRAWING, **options}
        answer = httpx.post(f"{url}/api/v1/generate", json=body, timeout=60)
        answer.raise_for_status()
        blocks = [block.split("\n") for block in answer.text.split("\n\n") if block]
        return [json.loads(data[6:]) for event, data in blocks if event == "event: token"]

    return ask


def button(reader, name):
    return reader.view.get_by_role("button", name=name, exact=True)


def shown(reader):
    """Return the written tokens, as the eye sees them."""
    return reader.view.locator(".is-prose .chip.is-written").all_text_contents()


def path(reader):
    """Return the tokens that the address keeps."""
    match = re.search(r"generate_path=([\d.]*)", reader.fragment)
    return [int(token) for token in match.group(1).split(".")] if match else []


def wait_for_tokens(reader, count):
    reader.page.wait_for_function(
        "(count) => document.querySelectorAll('.is-prose .is-written').length >= count", arg=count
    )


def step(reader):
    """Press Step, and wait until the token and all that led to it are there."""
    count = len(shown(reader)) + 1
    button(reader, "Step").click()
    settle(reader, count)


def settle(reader, count):
    """Wait until so many tokens are shown, kept in the address, and drawn."""
    reader.page.wait_for_function(
        """(count) => document.querySelectorAll('.is-prose .is-written').length === count
        && (new URLSearchParams(location.hash.slice(1)).get('generate_path') ?? '').split('.')
            .filter(Boolean).length === count
        && document.querySelector('.generation button').textContent === 'Run'""",
        arg=count,
    )
    reader.wait_until_drawn()


def visible(tokens):
    return [token["text"].replace(" ", "·").replace("\n", "↵") for token in tokens]


def title(reader):
    text = reader.view.locator(".panel h2").first.text_content()
    return text.replace("\u2068", "").replace("\u2069", "")


def bar_labels(reader):
    """Return the labels of the bars of likely tokens."""
    labels = reader.view.locator(".panel").first.locator(".textpoint").all_text_contents()
    return [label.strip("\xa0") for label in labels]


# --- writing --------------------------------------------------------------------------------------


def test_a_step_writes_one_token_and_shows_what_led_to_it(reader, written):
    reader.open(**VIEW)
    step(reader)
    (token,) = written(1)
    assert shown(reader) == visible([token])
    assert path(reader) == [token["id"]]
    assert title(reader) == "After “time”"
    chances = [each["probability"] for each in token["alternatives"]]
    expected = [f"{100 * chance:.1f} %" if chance > 0 else "0 %" for chance in chances]
    assert [label.removesuffix(", written") for label in bar_labels(reader)] == expected
    bar = next(label for label in bar_labels(reader) if "written" in label)
    assert bar == f"{100 * token['probability']:.1f} %, written"
    assert reader.announced.startswith(f"“{token['text'].strip()}” written, probability")
    assert f"rank {token['rank']}" in reader.announced


def test_a_run_goes_on_until_it_is_stopped_and_says_so_once(reader, written):
    reader.open(**VIEW)
    button(reader, "Run").click()
    wait_for_tokens(reader, 5)
    assert reader.announced == "", "nothing is read out while it runs"
    button(reader, "Stop").click()
    button(reader, "Run").wait_for()
    count = len(shown(reader))
    settle(reader, count)
    assert 5 <= count < 200
    assert reader.announced == f"{count} tokens written."
    assert shown(reader) == visible(written(count))
    reader.page.wait_for_timeout(400)
    assert len(shown(reader)) == count, "stopped is stopped"


def test_typing_is_never_held_up_by_a_run_and_ends_it(reader):
    reader.open(**VIEW)
    aborted = []
    reader.page.on(
        "requestfailed", lambda r: r.url.endswith("/generate") and aborted.append(r.failure)
    )
    button(reader, "Run").click()
    wait_for_tokens(reader, 2)
    reader.page.locator("#text").press_sequentially(" there was", delay=5)
    reader.page.wait_for_function("() => document.querySelectorAll('#chips .chip').length === 7")
    reader.wait_until_drawn()
    assert aborted
    assert reader.page.input_value("#text") == TEXT + " there was"
    assert shown(reader) == []
    assert path(reader) == []


def test_leaving_the_view_ends_the_work_and_coming_back_shows_what_was_kept(reader):
    reader.open(**VIEW)
    aborted = []
    reader.page.on(
        "requestfailed", lambda r: r.url.endswith("/generate") and aborted.append(r.failure)
    )
    button(reader, "Run").click()
    wait_for_tokens(reader, 12)
    reader.choose_view("attention")
    reader.page.wait_for_timeout(200)
    assert len(aborted) == 1
    reader.choose_view("generate")
    kept = path(reader)
    assert kept
    settle(reader, len(kept))


# --- going back, and elsewhere --------------------------------------------------------------------


def test_a_step_back_takes_the_last_token_away_and_a_step_brings_it_again(reader):
    reader.open(**VIEW)
    for _ in range(3):
        step(reader)
    before = shown(reader)
    button(reader, "Step back").click()
    settle(reader, 2)
    assert shown(reader) == before[:2]
    step(reader)
    assert shown(reader) == before, "the same seed draws the same token"
    button(reader, "Start over").click()
    reader.page.wait_for_function("() => !location.hash.includes('generate_path')")
    assert shown(reader) == []


def test_another_token_is_chosen_by_keyboard_alone(reader, written):
    reader.open(**VIEW)
    page = reader.page
    button(reader, "Step").focus()
    page.keyboard.press("Enter")
    settle(reader, 1)
    assert page.evaluate("document.activeElement.textContent") == "Step", "the focus stays"
    (token,) = written(1)
    reader.view.locator(".plot").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    other = token["alternatives"][2]
    assert f"“{other['text'].strip()}” has probability" in reader.announced
    page.keyboard.press("Enter")
    page.wait_for_function("(id) => location.hash.endsWith(`generate_path=${id}`)", arg=other["id"])
    settle(reader, 1)
    assert path(reader) == [other["id"]]


def test_a_link_a_reload_and_the_back_button_restore_the_path(reader, written):
    ids = [token["id"] for token in written(12)]
    reader.open(**VIEW, generate_path=".".join(map(str, ids)), generate_step=4, generate_seed=7)
    wait_for_tokens(reader, 12)
    reader.wait_until_drawn()
    before = shown(reader)
    assert before == visible(written(12))
    reader.page.reload()
    wait_for_tokens(reader, 12)
    reader.wait_until_drawn()
    assert (shown(reader), path(reader)) == (before, ids)
    assert "generate_step=4" in reader.fragment
    button(reader, "Step back").click()
    settle(reader, 11)
    reader.page.go_back()
    settle(reader, 12)
    assert shown(reader) == before
