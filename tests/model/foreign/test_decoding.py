"""Texts end and begin as Transformers' greedy `generate` does, by the settings of a folder."""

import json
import shutil
from functools import cache

import pytest
import torch

from headlight.model.cancellation import Cancelled, cancellable
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign.decoding import MAX_IDS
from headlight.model.foreign.folder import GENERATION
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.model import load_foreign, serve_module
from headlight.model.generation.sampling import Sampling, generate
from tests.tiny_checkpoints import make_model

SOURCES = [[5, 40, 17, 90, 41, 8, 230, 2], [66, 12, 99, 2]]
ARCHITECTURES = ["t5", "bart", "marian", "m2m100"]
PAIRS = ["t5", *(pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES[1:])]
DECODERS = [
    "gpt2",
    "bloom",
    pytest.param("llama", marks=pytest.mark.slow),
    pytest.param("gemma2", marks=pytest.mark.slow),
]


@pytest.fixture
def changed(folder_of, tmp_path):
    """Return a function that copies an architecture's folder with other settings of decoding."""

    def make(name, *, is_legacy=False, **settings):
        folder = shutil.copytree(folder_of(name), tmp_path / name)
        path = folder / GENERATION
        named = json.loads(path.read_text()) | settings
        if is_legacy:
            path.unlink()
            path = folder / "config.json"
            named = json.loads(path.read_text()) | settings
        path.write_text(json.dumps({key: value for key, value in named.items() if value != "none"}))
        return folder

    return make


@pytest.fixture
def loaded(served):
    """Return a function that loads a folder checked as those of an architecture."""

    def load(name, folder):
        model = served(name)
        return load_foreign(folder, kept=(model.description.revision, model.checked))

    return load


@cache
def reference(folder, name):
    """Return Transformers' own model of a folder."""
    return type(make_model(name)).from_pretrained(folder).eval()


def by_transformers(folder, name, ids, **options):
    """Return the tokens that Transformers' own model of a folder writes greedily."""
    inputs = torch.tensor([ids])
    options |= {"attention_mask": torch.ones_like(inputs), "num_beams": 1, "do_sample": False}
    with quiet(), torch.inference_mode():
        return reference(folder, name).generate(inputs, **options)[0].tolist()


@cache
def usual_token(name):
    """Return a token of the usual greedy text, to forbid it."""
    with quiet(), torch.inference_mode():
        model = make_model(name)
        ids = torch.tensor(SOURCES[:1])
        return model.generate(ids, num_beams=1, do_sample=False, max_new_tokens=4)[0, 2].item()


SETTINGS = {
    "none": {},
    "a forced first token": {"forced_bos_token_id": 77},
    "another start": {"decoder_start_token_id": 9, "forced_bos_token_id": 11},
    "a forced last token": {"forced_eos_token_id": 2, "max_length": 9},
    "a length": {"max_length": 7},
    "new tokens": {"max_new_tokens": 5, "max_length": 40},
    "a least length": {"eos_token_id": "usual", "min_length": 5},
    "no end": {"eos_token_id": "none"},
    "several ends": {"eos_token_id": ["usual", 2]},
    "an end beyond the vocabulary": {"eos_token_id": [10**9, -1]},
    "suppressed tokens": {"suppress_tokens": ["usual", 5]},
    "tokens suppressed at the beginning": {"begin_suppress_tokens": ["usual"]},
    "suppressed after forced": {"begin_suppress_tokens": ["usual"], "forced_bos_token_id": 77},
    "bad words": {"bad_words_ids": [["usual"], [2], [4, 5]]},
    "a penalty": {"repetition_penalty": 3.0},
    "no pairs twice": {"no_repeat_ngram_size": 2},
    "none of the source": {"encoder_no_repeat_ngram_size": 1},
}


def with_usual(value, usual):
    if isinstance(value, list):
        return [with_usual(item, usual) for item in value]
    return usual if value == "usual" else value


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("name", PAIRS)
def test_a_translation_is_that_of_generate(name, settings, changed, loaded):
    usual = usual_token(name)
    settings = {key: with_usual(value, usual) for key, value in settings.items()}
    folder = changed(name, **settings)
    model = loaded(name, folder)
    start = settings.get("decoder_start_token_id", 0 if name == "t5" else 2)
    for source, translated in zip(SOURCES, model.translate(SOURCES), strict=True):
        named = {"max_length", "max_new_tokens"} & settings.keys()
        options = {} if named else {"max_new_tokens": 2 * len(source) + 10}
        expected = by_transformers(folder, name, source, **options)
        assert expected[0] == start
        forced = settings.get("forced_bos_token_id")
        begin = [start] if forced is None else [start, forced]
        assert expected[: len(begin)] == begin
        assert [token.id for token in model.tokenizer.encode_target("")] == begin
        end = expected[-1:] if expected[-1] in model.end_ids else []
        assert [*begin, *translated, *end] == expected


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_translation_of_many_settings_is_that_of_generate(name, changed, loaded):
    settings = {
        "forced_bos_token_id": 77,
        "forced_eos_token_id": [3, 4],
        "eos_token_id": [3, 4],
        "max_length": 8,
        "min_length": 4,
        "suppress_tokens": [5, usual_token(name)],
        "bad_words_ids": [[6], [3]],
        "repetition_penalty": 1.5,
    }
    folder = changed(name, **settings)
    expected = by_transformers(folder, name, SOURCES[0])
    assert loaded(name, folder).translate(SOURCES[:1]) == [expected[2:-1]]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_old_folder_has_its_settings_in_its_config(name, changed, loaded):
    settings = {"forced_bos_token_id": 77, "forced_eos_token_id": 3, "max_length": 8}
    settings |= {"decoder_start_token_id": 9, "eos_token_id": 3, "bos_token_id": 1}
    folder = changed(name, is_legacy=True, **settings)
    expected = by_transformers(folder, name, SOURCES[0])
    assert expected[:2] == [9, 77]
    assert expected[-1] == 3
    model = loaded(name, folder)
    assert model.translate(SOURCES[:1]) == [expected[2:-1]]
    assert model.end_ids == {3}


def test_an_older_name_forces_the_start_token(changed, loaded):
    folder = changed("bart", is_legacy=True, force_bos_token_to_be_generated=True, bos_token_id=1)
    expected = by_transformers(folder, "bart", SOURCES[0], max_new_tokens=26)
    assert expected[:2] == [2, 1]
    (ids,) = loaded("bart", folder).translate(SOURCES[:1])
    assert [2, 1, *ids] == expected[: len(ids) + 2]


ENDS = {"one": "usual", "several": [1, "usual", 319], "none": "none", "unknown": [10**9]}


@pytest.mark.parametrize("is_legacy", [False, True], ids=["file", "config"])
@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_ends_where_generate_ends(name, ends, is_legacy, changed, loaded, folder_of):
    prompt = SOURCES[0][:-1]
    usual = by_transformers(folder_of(name), name, prompt, max_new_tokens=9, eos_token_id=None)
    begin = len(prompt)
    new = (i for i in range(begin + 3, len(usual)) if usual[i] not in usual[begin:i])
    number = next(new, begin)
    folder = changed(name, is_legacy=is_legacy, eos_token_id=with_usual(ends, usual[number]))
    model = loaded(name, folder)
    assert all(0 <= end < 320 for end in model.end_ids)
    expected = by_transformers(folder, name, prompt, max_new_tokens=9)
    options = {"n_tokens": 9, "sampling": Sampling(temperature=0), "stop_id": model.end_ids}
    written = [token.id for token in generate(model.writer(), prompt, **options)]
    assert [*prompt, *written] == expected
    assert len(written) == (number - begin + 1 if "usual" in str(ends) else 9)


@pytest.mark.parametrize(
    ("name", "settings", "ignored"),
    [
        ("bart", {"num_beams": 4, "length_penalty": 2.0, "no_repeat_ngram_size": 3}, "num_beams:"),
        ("bart", {"sequence_bias": [[[5], 1.0]], "guidance_scale": 2}, "guidance_scale, sequence"),
        ("gpt2", {"repetition_penalty": 1.3, "num_beams": 1}, "repetition_penalty:"),
        ("gpt2", {"suppress_tokens": [4], "min_length": 3}, "min_length, suppress_tokens:"),
    ],
)
def test_what_is_not_followed_is_said_with_its_names(name, settings, ignored, changed, loaded):
    model = loaded(name, changed(name, **settings))
    assert model.description.omitted["generation_config"].startswith(ignored)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bart", {"num_beams": 1, "repetition_penalty": 1.2, "forced_bos_token_id": 3}),
        ("gpt2", {"repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "do_sample": True}),
    ],
)
def test_nothing_is_said_where_all_is_followed(name, settings, changed, loaded):
    model = loaded(name, changed(name, **settings))
    assert "generation_config" not in model.description.omitted


HOSTILE = {
    "a token that is not there": ({"forced_bos_token_id": 320}, "names the token 320; .* 0 to 319"),
    "a negative token": ({"decoder_start_token_id": -1}, "names the token -1"),
    "suppressed ones": ({"suppress_tokens": [1, 10**9]}, "names the token 1,000,000,000"),
    "a token of another type": ({"forced_eos_token_id": "a" * 10**5}, "must be a whole number"),
    "a flag": ({"eos_token_id": [True]}, "must be a whole number"),
    "many ends": ({"eos_token_id": [1] * (MAX_IDS + 1)}, "10,001 values"),
    "many suppressed": ({"suppress_tokens": [1] * (MAX_IDS + 1)}, "10,001 values"),
    "many bad words": ({"bad_words_ids": [[1]] * (MAX_IDS + 1)}, "10,001 words"),
    "a long bad word": ({"bad_words_ids": [[1] * 101]}, "up to 101 tokens"),
    "bad words of another type": ({"bad_words_ids": {"a": 1}}, "list of lists"),
    "an empty bad word": ({"bad_words_ids": [[]]}, "list of lists"),
    "forced and suppressed": (
        {"forced_eos_token_id": 7, "suppress_tokens": [7]},
        "forced_eos_token_id.* suppress_tokens",
    ),
    "a length": ({"max_length": 10**9}, "1 to 134,217,728"),
    "no length": ({"max_new_tokens": 0}, "1 to 134,217,728"),
    "a size of another type": ({"no_repeat_ngram_size": 2.5}, "must be a whole number"),
    "a penalty": ({"repetition_penalty": -1}, "number above 0"),
    "a penalty without end": ({"repetition_penalty": {"__float__": "Infinity"}}, "above 0"),
    "not a number": ({"repetition_penalty": float("nan")}, "NaN is not a JSON number"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_setting_is_refused_in_one_sentence(name, changed):
    settings, reason = HOSTILE[name]
    with pytest.raises(CheckpointError, match=reason) as caught:
        load_foreign(changed("bart", **settings))
    said = str(caught.value)
    assert GENERATION in said
    assert "\n" not in said
    assert len(said) < 400


@pytest.mark.parametrize("content", ["[]", "{", '{"a": 1, "a": 2}', "[" * 10**5, " " * 2**21])
def test_a_file_that_is_no_object_is_refused(content, changed):
    folder = changed("gpt2")
    (folder / GENERATION).write_text(content)
    with pytest.raises(CheckpointError, match=GENERATION):
        load_foreign(folder)


def test_an_end_is_never_a_bad_word(changed, loaded, served):
    model = loaded("t5", changed("t5", bad_words_ids=[[2]]))
    assert model.translate(SOURCES) == served("t5").translate(SOURCES)


def test_a_pair_without_a_start_is_served_without_translations(changed, loaded):
    folder = changed("bart", is_legacy=True, decoder_start_token_id=None, bos_token_id="none")
    model = loaded("bart", folder)
    assert "translate" not in model.description.features
    with pytest.raises(ValueError, match="begins with"):
        model.translate(SOURCES)


def test_other_settings_are_another_revision(changed, folder_of):
    before = load_foreign(folder_of("bart")).description.revision
    after = load_foreign(changed("bart", forced_bos_token_id=5)).description.revision
    assert before != after


def test_a_translation_can_be_cancelled_between_tokens(served):
    asked = []

    def should_stop():
        asked.append(1)
        return len(asked) > 3

    with pytest.raises(Cancelled), cancellable(should_stop):
        served("t5").translate(SOURCES)
    assert len(asked) == 4


def test_a_module_in_memory_has_its_own_settings():
    module = make_model("bart")
    module.generation_config.forced_bos_token_id = 77
    model = serve_module(module, "seq2seq", "tiny")
    with quiet(), torch.inference_mode():
        out = module.generate(torch.tensor(SOURCES[:1]), max_new_tokens=26, num_beams=1)
    (ids,) = model.translate(SOURCES[:1])
    assert [2, 77, *ids] == out[0].tolist()[: len(ids) + 2]
