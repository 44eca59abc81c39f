"""No sentence that the page says is false, for what people type, in any model that ships."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache, partial
from pathlib import Path

import pytest
import yaml

from headlight import Client
from headlight.client.errors import HeadlightError
from headlight.settings import Settings
from tests.app.conftest import serve
from tests.page.cells_truth import CellJudge
from tests.page.scene_truth import SceneJudge
from tests.page.truth import FalseSentence, Judge
from tests.page.views_truth import TOP

HERE = Path(__file__).parent
REAL_FOLDER = os.environ.get("HEADLIGHT_REAL_MODEL", "")
REAL = Path(REAL_FOLDER).name
ROOT = HERE.parents[1]
ZOO = ROOT / "model" / "zoo"
MODELS = sorted(folder.name for folder in ZOO.iterdir() if folder.is_dir())


@cache
def front_matter(model):
    if model == REAL:
        return {"title": model, "examples": {}}
    return yaml.load((ZOO / model / "CARD.md").read_text().split("---")[1], yaml.CSafeLoader)


ESCAPE = re.compile(r"\\(?:[nt]|u[0-9a-f]{4})")
TYPED = [
    ESCAPE.sub(lambda escape: json.loads(f'"{escape.group()}"'), line)
    for line in (HERE / "typed.txt").read_text().splitlines()
]
EXAMPLES = {
    model: [
        example["text"] if isinstance(example, dict) else example
        for example in front_matter(model)["examples"].values()
    ]
    for model in MODELS
}
# Held out of the training of every model: three authors, a line in two.
UNSEEN = [
    line
    for author in ("andrew_lang", "madeline_brandeis", "sophie_may")
    for line in (ROOT / "lab" / "evaluation" / "gold" / f"{author}.txt").read_text().splitlines()
    if 20 < len(line) < 240
][:500]
SCENE = ("scene", "outcome", "without")
VIEWS = ("answer", "readout", "help", "part", "cell", "summary")
UNREADABLE = (KeyError, IndexError, ValueError, TypeError, AttributeError, HeadlightError)
CAPTURE = ["*.weights", "*.expert_indices"]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    settings = Settings(
        zoo_dir=ZOO,
        models_dir=None,
        default_model=REAL or "stories",
        model_folders=(REAL_FOLDER,) if REAL else (),
        links_dir=tmp_path_factory.mktemp("links"),
        device="cpu",
        queue_seconds=100,
        shutdown_seconds=2,
    )
    with serve(settings) as server:
        yield server.url


def said_of(url, model, texts, every, scenes, without):
    """Yield what the page says of each text, as `say.js` writes it."""
    node = Path(sys.executable).parent / "node"
    of = {"model": model, "every": every, "without": without}
    asked = "".join(
        json.dumps(of | {"text": text, "is_full": at % scenes == 0}) + "\n"
        for at, text in enumerate(texts)
    )
    command = [node, str(HERE / "say.js"), url]
    answer = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    for line in answer.stdout.splitlines():
        yield json.loads(line)


@cache
def profile_of(model):
    path = ZOO / model / "heads.json"
    return json.loads(path.read_text()) if path.exists() else None


def judged(url, model, texts, every=1, scenes=1, without=()):
    """Return the number of sentences by kind, and the false ones with their reasons.

    Every so many rows are said, and every so many texts have a scene and views, all but some.
    """
    counts, wrong = Counter(), []
    profile = profile_of(model)
    path = Path(REAL_FOLDER, "config.json")
    config = json.loads(path.read_text())["rope_parameters"] if model == REAL else {}
    with Client(url) as client:
        card = client.model(model)
        capture = CAPTURE[: 2 if card.moe else 1]
        analyses = ["reward" if "reward" in card.analyses else "next_token"]
        cards = {of.id: (of.title or of.id, of.learned) for of in client.models().models}
        for answer in said_of(url, model, texts, every, scenes, without):
            if "problem" in answer:  # the model cannot read it
                counts["refused"] += 1
                continue
            asked = {"model": model, "target": answer["target"] or None}  # translated once
            trace = client.trace(answer["text"], capture=capture, analyses=analyses, **asked)
            judge = Judge(trace, profile, front_matter(model))
            judge.cards, judge.base = cards, config.get("rope_theta", 10_000)
            judge.card_of_model, judge.n_layers = card, card.n_layers
            judge.stack = "encoder" if card.kind == "encoder" else "decoder"
            ask = partial(client.trace, answer["text"], model=model, target=trace.target)
            judges = {kind: SceneJudge(ask, judge) for kind in SCENE}
            views = CellJudge(ask, judge)
            views.circuit = partial(client.circuit, model=model)
            views.read = partial(client.trace, model=model, **TOP)
            judges |= dict.fromkeys(VIEWS, views)
            for said in answer["said"]:
                counts[said["kind"]] += 1
                try:
                    judges.get(said["kind"], judge).check(said)
                except (FalseSentence, *UNREADABLE) as error:
                    wrong.append((str(error), said, answer["text"]))
    return counts, wrong


def report(counts, wrong, model):
    """Print the counts by kind, and fail with the first false sentences."""
    sys.stdout.write(f"{model}: {dict(counts)}, {len(wrong)} false\n")
    shown = "\n".join(f"{why}: {said} of {text!r}" for why, said, text in wrong[:10])
    assert not wrong, f"{len(wrong)} false sentences\n{shown}"


@pytest.mark.parametrize("model", MODELS)
def test_what_the_page_says_of_a_few_typed_texts_and_its_examples_is_true(url, model):
    counts, wrong = judged(url, model, [*EXAMPLES[model][:2], *TYPED[2::30]], every=3, scenes=9)
    report(counts, wrong, model)
    assert counts["row"] > 100


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("model", MODELS)
def test_what_the_page_says_of_typed_texts_and_of_all_examples_is_true(url, model):
    counts, wrong = judged(url, model, [*TYPED, *EXAMPLES[model]])
    report(counts, wrong, model)
    assert counts["row"] > 5000


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("piece", range(5))
@pytest.mark.parametrize("model", MODELS)
def test_what_the_page_says_of_unseen_text_is_true(url, model, piece):
    assert len(UNSEEN) == 500
    counts, wrong = judged(url, model, UNSEEN[piece::5], every=37, scenes=8)
    report(counts, wrong, model)
    assert counts["row"] + counts["refused"] > 98


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("piece", range(20))
@pytest.mark.skipif(not REAL, reason="HEADLIGHT_REAL_MODEL names no folder of Hugging Face")
def test_what_the_page_says_of_a_real_model_is_true(url, piece):
    without = ["head"] if piece else []  # its circuits read the vocabulary in every layer
    texts = [*TYPED[piece::20], *UNSEEN[piece:100:20]]
    counts, wrong = judged(url, REAL, texts, every=37, without=without)
    report(counts, wrong, REAL)
    assert counts["row"] > 100
