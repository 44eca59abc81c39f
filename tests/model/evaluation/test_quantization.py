"""A model in fewer bits is measured as the copy that `headlight quantize` writes."""

import pytest

from headlight.model.checkpoint import load, save
from headlight.model.evaluation.figures import Evidence, measure_bits
from headlight.model.evaluation.quantization import evaluate
from headlight.model.evaluation.stories import bits_per_byte
from headlight.model.quantization import StoredQuantization

DOCUMENTS = ["The cat saw the dog and then, at last, the cat sat down. " * 4]


@pytest.mark.slow
def test_the_figures_are_those_of_the_copy_in_a_file(tmp_path, checkpoint, tokenizer, card):
    found = evaluate(checkpoint, lambda one: bits_per_byte(one, DOCUMENTS), [8, 3])
    assert list(found) == ["float", "bits_8", "bits_8_dynamic", "bits_3"]
    for name, stored in (
        ("float", None),
        ("bits_3", StoredQuantization(bits=3)),
        ("bits_8_dynamic", StoredQuantization(bits=8, activations="dynamic")),
    ):
        folder = tmp_path / name
        save(folder, checkpoint.model, tokenizer, card, quantization=stored)
        assert found[name]["file_bytes"] == (folder / "model.safetensors").stat().st_size
        expected = bits_per_byte(load(folder), DOCUMENTS)["bits_per_byte"]
        assert found[name]["bits_per_byte"] == pytest.approx(expected, abs=1e-6)
        assert found[name]["tokens_per_cpu_second"] > 0
    assert found["bits_8"]["bits_per_byte"] != found["bits_3"]["bits_per_byte"]


def test_other_files_and_quantized_models_are_rejected(tmp_path, checkpoint, tokenizer, card):
    with pytest.raises(ValueError, match="fewer bits are measured on a text"):
        measure_bits(checkpoint, Evidence(corpus=(tmp_path,)), [4])
    save(tmp_path / "q", checkpoint.model, tokenizer, card, quantization=StoredQuantization(bits=6))
    with pytest.raises(ValueError, match="'q' is quantized already"):
        evaluate(load(tmp_path / "q"), lambda one: {}, [4])
