"""Runs so small that a step takes milliseconds."""

import pytest
import torch

from headlight.lab.training.batches import Batch, generator_of
from headlight.lab.training.config import LoopConfig
from headlight.lab.training.loop import Loop
from headlight.lab.training.recipes.stories import Stage, StoriesConfig
from headlight.lab.training.run import Run, make_run, resume, start
from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.transformer import Transformer

SMALL = TransformerConfig(
    n_layers=2,
    n_heads=2,
    d_model=16,
    d_ff=24,
    vocab_size=300,
    max_tokens=24,
    dropout=0.1,
    moe=ExpertsConfig(n_experts=4, top_k=2, layers=(1,)),
)


class Counting:
    """Batches of rows that count upwards from a random number: 5 6 7 8."""

    def batch(self, step):
        return self._rows(generator_of(0, step))

    def validation(self):
        return [self._rows(generator_of(1, number)) for number in range(2)]

    def _rows(self, generator):
        rows = torch.randint(40, (4, 1), generator=generator) + torch.arange(13)
        return Batch.of_rows(rows, torch.ones(4, 12, dtype=torch.bool))


@pytest.fixture
def make_loop(tmp_path):
    """Return a loop over counting rows: ``make_loop("out", steps=9)``."""

    def make(name="run", *, precision=torch.float32, model_config=SMALL, **config):
        torch.manual_seed(0)
        model = Transformer(model_config)
        loop_config = LoopConfig(**{"steps": 8, "warmup": 2, **config})
        return Loop(model, Counting(), loop_config, tmp_path / name, precision)

    return make


@pytest.fixture
def begin(tmp_path):
    """Return a loop of a recipe: ``begin("reward", [path], "out", {}, begun_from=folder)``."""

    def make(recipe, files, name, settings, **models):
        asked = make_run(recipe, files, settings=settings, precision="float32", **models)
        return start(asked, tmp_path / name, device="cpu")

    return make


@pytest.fixture
def corpus(tmp_path):
    """Return a file of sixty paragraphs of a few hundred different words."""
    generator = torch.Generator().manual_seed(0)
    names = ["cat", "dog", "fox", "hen", "boy", "king", "bird", "tree", "moon", "ship"]
    verbs = ["saw", "met", "heard", "lost", "found", "chased", "liked", "told"]

    def word(words):
        return words[int(torch.randint(len(words), (), generator=generator))]

    lines = [
        f"The {word(names)} {word(verbs)} the {word(names)}, and then the {word(names)} "
        f"{word(verbs)} number {number}."
        for number in range(60)
    ]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def run(corpus):
    """Return a run of eight steps in both phases on the corpus."""
    return Run(
        recipe="stories",
        corpus=(str(corpus),),
        model=SMALL,
        rows=StoriesConfig(
            stages=(
                Stage(2, tokens=16, drawn_by_frequency=4),
                Stage(6, tokens=24, text=3, drawn_by_frequency=1),
            ),
            held_out=4,
        ),
        loop=LoopConfig(steps=8, warmup=2, validate_every=4, save_every=3),
        precision="float32",
    )


class StopError(Exception):
    """An error that ends a run from outside, without warning."""


def stop_at(step, loop):
    """Run a loop until it is killed after a step."""

    def listen(report):
        if report.step == step:
            raise StopError

    with pytest.raises(StopError):
        loop.run(listen)


def require_equal_when_resumed(whole, stopped):
    """Check that a run which is killed in its third step and resumed ends with the same weights."""
    whole.run()
    stop_at(3, stopped)
    resumed = resume(stopped.out, device="cpu")
    assert resumed.step == 2
    resumed.run()
    for name, tensor in whole.model.weights().items():
        assert torch.equal(tensor, resumed.model.weights()[name]), name
