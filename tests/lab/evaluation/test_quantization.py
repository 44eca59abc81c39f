"""A model in fewer bits is measured as the copy that `headlight quantize` writes."""

from types import SimpleNamespace

import pytest

from headlight.lab.evaluation.figures import Evidence, measure_bits
from headlight.lab.evaluation.quantization import evaluate
from headlight.lab.evaluation.text import bits_per_byte
from headlight.model.arithmetic import split
from headlight.model.checkpoint.card import read_card
from headlight.model.checkpoint.loading import ZOO, load, save
from headlight.model.quantization.affine import StoredQuantization

DOCUMENTS = ["The cat saw the dog and then, at last, the cat sat down. " * 4]


def _few_problems():
    return SimpleNamespace(test=split().test[:40])


@pytest.mark.slow
def test_the_figures_are_those_of_the_copy_in_a_file(tmp_path, checkpoint, tokenizer, card):
    figures = evaluate(checkpoint, lambda copy: bits_per_byte(copy, DOCUMENTS), [8, 3])
    assert list(figures) == ["float", "bits_8", "bits_8_dynamic", "bits_3"]
    for name, stored in (
        ("float", None),
        ("bits_3", StoredQuantization(bits=3)),
        ("bits_8_dynamic", StoredQuantization(bits=8, activations="dynamic")),
    ):
        folder = tmp_path / name
        save(folder, checkpoint.model, tokenizer, card, quantization=stored)
        assert figures[name]["file_bytes"] == (folder / "model.safetensors").stat().st_size
        expected = bits_per_byte(load(folder), DOCUMENTS)["bits_per_byte"]
        assert figures[name]["bits_per_byte"] == pytest.approx(expected, abs=1e-6)
        assert figures[name]["tokens_per_cpu_second"] > 0
    assert figures["bits_8"]["bits_per_byte"] != figures["bits_3"]["bits_per_byte"]


@pytest.mark.slow
def test_a_model_of_each_recipe_is_measured_by_its_own_figure(monkeypatch):
    monkeypatch.setattr("headlight.lab.evaluation.quantization.N_PASSES", 1)
    monkeypatch.setattr("headlight.lab.evaluation.reasoning.split", _few_problems)
    figures = measure_bits(load(ZOO / "sums"), Evidence(), [4])
    told = read_card(ZOO / "sums" / "CARD.md").metrics["sample"]["right"]
    assert figures["float"]["right"] == pytest.approx(told, abs=0.2)
    figures = measure_bits(load(ZOO / "stories-reward"), Evidence(), [2])
    assert figures["float"]["accuracy"] > 0.02 + figures["bits_2"]["accuracy"]


def test_other_files_and_quantized_models_are_rejected(tmp_path, checkpoint, tokenizer, card):
    with pytest.raises(ValueError, match="fewer bits are measured on a text"):
        measure_bits(checkpoint, Evidence(corpus=(tmp_path,)), [4])
    with pytest.raises(ValueError, match="measured on problems, not files"):
        measure_bits(load(ZOO / "sums"), Evidence(text=(tmp_path,)), [4])
    save(tmp_path / "q", checkpoint.model, tokenizer, card, quantization=StoredQuantization(bits=6))
    with pytest.raises(ValueError, match="'q' is quantized already"):
        evaluate(load(tmp_path / "q"), lambda copy: {}, [4])
