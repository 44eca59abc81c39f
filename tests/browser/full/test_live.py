"""A site whose pages compute any sentence: its numbers are the server's, and refusals say why."""

import json

import numpy as np
import pytest

from headlight.models.model_registry import registry_of
from headlight.schemas.traces import TraceRequest
from headlight.settings import Settings
from headlight.site import folder
from headlight.site.answers import Answers
from headlight.site.folder import MARK, Plan, write_site
from headlight.tracing.service import trace_now
from tests.browser.conftest import SECONDS
from tests.browser.full.test_site import DRAWN, HELD, hosting
from tests.imports import ROOT

pytestmark = pytest.mark.timeout(20 * SECONDS)  # three models are exported
MODEL = "stories"
SENTENCES = (
    "The big dog’s friend said “hello” to Anna and the big dog",
    "One day, Tom and Anna went to the park. Anna gave the ball to",
    "Lily saw a red bird… and then a blue one – it was",
    "ONCE UPON A TIME THERE WAS A CAT",
    "“Don’t go,” said Ben’s mum. “It’s too dark.”",
    "A naïve café owner 😀 sold 12 cakes",
    "Sam had a big box. In the big",
    "It was  raining,\nso the girl took her",
    "The queen’s cat and the king’s dog were",
    "Every day the little boy went to his",
)
TRANSLATOR = "translate"
TRANSLATED = (
    "The little black cat is sleeping under the table.",
    "I don’t want to go home.",
    "What are you doing tomorrow morning?",
    "Do you know where Kofi lives?",
    "The big dog sees a small red house.",
    "SHE GAVE HIM A BOOK",
    "We went to the sea 😀 yesterday with 12 friends.",
    "He said “hello” to my mother and left…",
    "My brother has never seen the mountains in winter, but he would like to go there.",
    "Tom naïvely ate the café’s cake.",
)
FILLER = "fill"
MASKED = (
    "The big [MASK] sees a small red house.",
    "Once upon a [MASK] there was a [MASK] who lived in the forest.",
    "ONCE UPON A [MASK] THERE WAS A CAT",
    "“Where are you going?” [MASK] the old woman.",
)
HEADS_OFF = [{"kind": "heads_off", "heads": [0, 2], "layer": 1}]
ASKS = (
    {"capture": ["*.self_attention.weights"], "analyses": ["head_labels", "logit_lens"]},
    {"capture": ["logits"], "analyses": ["next_token", "rollout"], "edits": HEADS_OFF},
    {"analyses": ["reasons"], "logit_difference": {"position": 4}},
    {"analyses": ["logit_attribution"], "logit_difference": {"position": 5, "token": 300}},
)
ALIGNED = {"capture": ["*.cross_attention.weights"], "analyses": ["alignment"]}
CASES = [(MODEL, text, ASKS) for text in SENTENCES]
CASES += [(TRANSLATOR, text, (*ASKS, ALIGNED)) for text in TRANSLATED]
CASES += [(FILLER, text, ASKS) for text in MASKED]
NUMBERS = 40
"""Of each answer, drawn by a seed."""
ANSWER = """async (body) => {
    const { fetchAnswer } = self.headlightCode.need('api/answers.js');
    const { tokens, target, tensors, analyses, within } = await fetchAnswer({ models: [] }, body);
    const plain = (arrays) => Object.fromEntries(
        Object.entries(arrays).filter(([, each]) => each?.shape).map(
            ([name, { data, scale }]) => [name, Array.from(data, (value) => value * scale)]));
    const found = Object.entries(analyses).map(([name, each]) => [name, plain(each)]);
    return { tokens, target, within, tensors: plain(tensors), analyses: Object.fromEntries(found) };
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Yield the address of a site that holds a text and computes three models; it takes minutes."""
    out = tmp_path_factory.mktemp("sites") / "site"
    readings = Answers.readings

    def of_model(*args):
        return [each for each in readings(*args) if each.model == MODEL][:1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "EXPERIMENTS", {})
        patch.setattr(folder, "_chapters", lambda *_: [])
        patch.setattr(Answers, "readings", of_model)
        write_site(out, Plan(live=[MODEL, TRANSLATOR, FILLER]), Settings())
    with hosting(out) as url:
        yield out, url


@pytest.fixture
def page(site, new_context):
    page = new_context(1440, 900).new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site[1]}index.html#model={MODEL}")
    page.wait_for_selector(DRAWN, state="attached")
    yield page
    page.context.close()
    assert all(url.startswith((site[1], "blob:", "data:")) for url in asked)


def typed(page, text):
    """Type a sentence, and wait until it is read or refused."""
    page.fill("#text", text)
    page.keyboard.press("Enter")
    page.wait_for_function(
        "() => !document.querySelector('#notice').hidden ||"
        " document.querySelector('#reads').textContent.includes('computed in this browser')",
        timeout=SECONDS * 1000,
    )


def numbers_in(tensors, analyses):
    """Return all numbers by name."""
    return {
        **tensors,
        **{
            f"{name}.{key}": each for name, found in analyses.items() for key, each in found.items()
        },
    }


@pytest.mark.parametrize(("model", "text", "asks"), CASES)
def test_numbers_are_those_of_the_server(page, model, text, asks):
    rng, settings = np.random.default_rng(0), Settings()
    for ask in asks:
        request = {"model": model, "text": text, "capture": [], **ask}
        found = page.evaluate(ANSWER, request)
        wanted = trace_now(TraceRequest(**request), registry_of(settings), settings)
        assert [
            (each["id"], each["text"], each["start"], each["end"], each["word"])
            for each in found["tokens"]
        ] == [(each.id, each.text, each.start, each.end, each.word) for each in wanted.trace.tokens]
        assert found["target"] == wanted.trace.target
        computed = numbers_in(found["tensors"], found["analyses"])
        expected = numbers_in(
            {name: array.data for name, array in wanted.tensors.items()},
            {
                name: {key: array.data for key, array in result.arrays.items()}
                for name, result in wanted.analyses.items()
            },
        )
        names = sorted(expected.keys() & computed.keys())
        assert names
        for name in rng.choice(names, NUMBERS):
            at = rng.integers(expected[name].size)
            assert computed[name][at] == pytest.approx(expected[name].flat[at], abs=2e-4), name
    assert 0 < found["within"] < 1e-4


def test_the_encoder_cuts_a_text_as_the_server_does(page):
    encode = """async ([model, texts]) => {
        const { fetchAnswer } = self.headlightCode.need('api/answers.js');
        const answers = [];
        for (const text of texts) {
            const body = { model, text, capture: [], analyses: [] };
            answers.push((await fetchAnswer({ models: [] }, body)).tokens.map(({ id }) => id));
        }
        return answers;
    }"""
    tokenizer = registry_of(Settings()).checkpoint(MODEL).tokenizer
    documents = (ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"))
    lines = {line for path in documents for line in path.read_text(encoding="utf-8").splitlines()}
    ids = {line: [token.id for token in tokenizer.encode(line)] for line in lines if line}
    texts = [text for text, of_text in sorted(ids.items()) if 3 <= len(of_text) <= 200]
    assert len(texts) > 200
    assert page.evaluate(encode, [MODEL, texts]) == [ids[text] for text in texts]


def test_an_own_sentence_is_read_switched_and_written_on_offline(page, site):
    typed(page, SENTENCES[6])
    assert "equal to the server within" in page.inner_text("#reads")
    page.wait_for_selector(f"#results:not([hidden]) {DRAWN}", state="attached")
    page.locator("#switch").click()
    page.wait_for_function(
        "() => document.querySelector('#finding').textContent.includes('Without')"
    )
    page.evaluate("navigator.serviceWorker.ready.then(({active}) => active.postMessage('keep'))")
    files = json.loads((site[0] / MARK).read_text())["files"]
    while page.evaluate(HELD) < len(files) + 2:  # the folder itself, and the list
        page.wait_for_timeout(200)
    page.context.set_offline(True)
    page.reload()
    typed(page, SENTENCES[9])
    assert not page.locator("#notice").is_visible()
    page.evaluate("location.hash = `${location.hash}&view=generate`")
    page.get_by_role("button", name="Step", exact=True).click()
    page.get_by_text("1 token written").wait_for()


def test_what_is_not_computed_is_told_in_a_sentence(page, site):
    for text, reason in [
        ("word " * 300, "303 tokens are more than the 256 that the model reads"),
        ("A", "too short"),
    ]:
        page.evaluate("document.querySelector('#notice').hidden = true")
        page.fill("#text", text)
        page.keyboard.press("Enter")
        page.locator("#notice").get_by_text(reason).wait_for()
    assert "headlight serve" in page.inner_text("#notice")


def test_half_a_model_file_is_told_and_the_archive_goes_on(site, new_context):
    page = new_context(service_workers="block").new_page()
    (path,) = (site[0] / "live").glob(f"{MODEL}-*.bin")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    try:
        page.goto(f"{site[1]}index.html")
        page.wait_for_selector(DRAWN, state="attached")
        typed(page, SENTENCES[0])
        assert "did not arrive whole" in page.inner_text("#notice")
    finally:
        path.write_bytes(whole)
    page.locator("#examples button").first.click()
    page.locator("#examples button[data-text]").first.click()
    page.wait_for_selector(f"#results:not([hidden]) {DRAWN}", state="attached")
    page.locator("#notice").wait_for(state="hidden")
    page.context.close()


def test_a_browser_without_simd_says_so(site, new_context):
    page = new_context(390, 844).new_page()
    page.add_init_script("WebAssembly.validate = () => false")
    page.goto(f"{site[1]}index.html")
    page.wait_for_selector(DRAWN, state="attached")
    typed(page, SENTENCES[0])
    assert "no WebAssembly with SIMD" in page.inner_text("#notice")
    page.context.close()
