"""Foreign models are described without Transformers, and served like the others."""

import json
import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
import safetensors.numpy

from headlight.commands.adding import add_model
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.checkpoint.loading import load
from headlight.model.foreign.checks import EAGER
from headlight.model.tracing import trace
from headlight.models.foreign import STORED, load_checked, read_description
from headlight.settings import Settings
from tests.app.conftest import client_of
from tests.app.connections import wait_for
from tests.app.reading import events_of, written_tokens
from tests.tiny_checkpoints import ARCHITECTURES, make_model, make_tokenizer, save_checkpoint

LIST = """
import json, sys, time
from pathlib import Path
from headlight.models.model_registry import registry_of
from headlight.settings import Settings
registry = registry_of(Settings(zoo_dir=sys.argv[1], models_dir=Path(sys.argv[2]), device="cpu"))
print(json.dumps([sorted(each.id for each in registry.listed), "transformers" in sys.modules]))
"""


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Return folders as Transformers writes them."""
    parent = tmp_path_factory.mktemp("checkpoints")
    for name in ("gpt2", "bert"):
        save_checkpoint(name, parent / name)
    return parent


@pytest.fixture(scope="module")
def models_dir(checkpoints, zoo, tmp_path_factory):
    """Return a directory with a model that was added, and with a bare checkpoint."""
    path = tmp_path_factory.mktemp("models")
    add_model(
        str(checkpoints / "gpt2"), Settings(zoo_dir=zoo, models_dir=path), measures_heads=False
    )
    shutil.copytree(checkpoints / "bert", path / "raw")
    return path


@pytest.fixture
def foreign(client_with, models_dir):
    """Return a client of a server with foreign models, none of which is loaded."""
    return client_with(models_dir=models_dir)


@pytest.fixture(scope="module")
def loaded(settings, models_dir):
    """Yield a client of such a server; tests share it, so each model loads once."""
    with client_of(settings, models_dir=models_dir) as client:
        yield client


def test_a_server_lists_them_without_importing_transformers(zoo, models_dir):
    command = [sys.executable, "-c", LIST, str(zoo), str(models_dir)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed, has_imported = json.loads(said)
    assert {"gpt2", "raw"} <= set(listed)
    assert not has_imported


def test_what_was_stored_is_what_the_self_check_finds(models_dir):
    stored, is_checked = read_description(models_dir / "gpt2")
    checked = load(models_dir / "gpt2").description
    assert is_checked
    for name in ("config", "revision", "n_parameters", "sites", "attentions", "architecture"):
        assert getattr(stored, name) == getattr(checked, name), name
    assert stored.checks["weights"] <= EAGER
    assert stored.features == checked.features
    assert stored.omitted == checked.omitted


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param(STORED, "{", id="not JSON"),
        pytest.param(STORED, "[]", id="not an object"),
        pytest.param(STORED, None, id="missing"),
        pytest.param("tokenizer.json", "{}", id="another tokenizer"),
        pytest.param("tokenizer_config.json", "{}", id="other options of the tokenizer"),
        pytest.param("generation_config.json", "{}", id="other settings of decoding"),
    ],
)
def test_a_description_that_is_damaged_or_of_other_files_is_not_believed(
    models_dir, tmp_path, name, content
):
    folder = shutil.copytree(models_dir / "gpt2", tmp_path / "gpt2")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    guessed, is_checked = read_description(folder)
    assert not is_checked
    assert guessed.sites == ()
    assert (guessed.config.kind, guessed.config.n_layers, guessed.config.n_heads) == (
        "decoder",
        2,
        4,
    )
    assert guessed.n_parameters > 30_000


@pytest.mark.parametrize("name", ["gpt2", "gpt_oss", "t5", "bloom"])
def test_a_check_is_kept_for_as_long_as_the_files_stay_the_same(name, tmp_path, monkeypatch):
    folder, checks = save_checkpoint(name, tmp_path / name), tmp_path / "checks"
    first = load_checked(folder, checks)
    with monkeypatch.context() as patch:
        patch.setattr("headlight.model.foreign.model.check", None)
        patch.setattr("headlight.model.foreign.model.revision_of", None)
        again = load_checked(folder, checks)
    assert again.description == first.description
    assert vars(again.checked) == vars(first.checked)
    assert (again.batches, again.is_streamed) == (first.batches, first.is_streamed)
    flags = ("path", "is_fused", "is_in_place", "has_formula")
    for (_, point), (_, same_point) in zip(
        first.named.attention_points, again.named.attention_points, strict=True
    ):
        assert [getattr(point, flag) for flag in flags] == [
            getattr(same_point, flag) for flag in flags
        ]
        assert point.observed.keys() == same_point.observed.keys()
    traces = [trace(model, TEXT, capture=["*"]) for model in (first, again)]
    for site in ("logits", *(facts.path + ".weights" for facts in first.description.attentions)):
        np.testing.assert_array_equal(traces[0][site].data, traces[1][site].data)
    path = folder / "model.safetensors"
    content, times = path.read_bytes(), path.stat()
    path.write_bytes(content[:-4] + np.float32("nan").tobytes())  # the same file, size and time
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(CheckpointError, match="holds a weight that is not finite"):
        load_checked(folder, checks)


def test_a_copied_folder_is_not_checked_again_and_another_one_is(tmp_path, monkeypatch):
    folder, checks = save_checkpoint("gpt2", tmp_path / "gpt2"), tmp_path / "checks"
    first = load_checked(folder, checks)
    copy = shutil.copytree(folder, tmp_path / "copy")
    with monkeypatch.context() as patch:
        patch.setattr("headlight.model.foreign.model.check", None)
        assert load_checked(copy, checks).description.checks == first.description.checks
        tensors = safetensors.numpy.load_file(copy / "model.safetensors")
        tensors["transformer.wpe.weight"] = tensors["transformer.wpe.weight"] * 2
        safetensors.numpy.save_file(tensors, copy / "model.safetensors", {"format": "pt"})
        with pytest.raises(CheckpointError, match="self-check"):
            load_checked(copy, checks)


def test_a_check_counts_for_the_kernels_that_it_ran_with(checkpoints, tmp_path, monkeypatch):
    checks = tmp_path / "checks"
    for capability in ("AVX2", "DEFAULT", "AVX2"):
        monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda name=capability: name)
        load_checked(checkpoints / "gpt2", checks)
    assert len(list(checks.glob("*.json"))) == 4  # by the state of the files, and by content


@pytest.mark.parametrize("content", ["{", '["0123456789abcdef", {}]', None])
def test_a_damaged_or_forbidden_file_of_a_check_is_not_needed(content, checkpoints, tmp_path):
    checks = tmp_path / "checks"
    if content is None:
        checks.write_text("")  # no directory can be made
    else:
        load_checked(checkpoints / "gpt2", checks)
        for path in checks.glob("*.json"):
            path.write_text(content)
    assert load_checked(checkpoints / "gpt2", checks).description.checks["weights"] <= EAGER


def test_an_added_model_shows_its_checks_before_it_is_loaded(foreign):
    card = foreign.get("/api/v1/models/gpt2").json()
    assert (card["state"], card["progress"], card["is_checked"]) == ("not_loaded", 0.0, True)
    assert card["architecture"] == "GPT2LMHeadModel"
    assert card["checks"]["weights"] <= EAGER
    assert card["omitted"] == {}
    assert card["memory_bytes"] == 4 * card["parameters"]
    assert card["sites"]


def test_the_first_request_loads_and_checks_a_folder_as_it_is(foreign):
    before = foreign.get("/api/v1/models/raw").json()
    assert (before["kind"], before["is_checked"], before["sites"]) == ("encoder", False, [])
    asked = {"model": "raw", "text": "The cat sat", "capture": ["*.weights"]}
    trace = foreign.post("/api/v1/trace", json=asked)
    assert trace.status_code == 200, trace.text
    after = foreign.get("/api/v1/models/raw").json()
    assert (after["state"], after["is_checked"]) == ("loaded", True)
    assert after["checks"]["weights"] <= EAGER
    assert set(trace.json()["tensors"]) <= {site["name"] for site in after["sites"]}


def test_other_models_answer_and_progress_is_shown_while_one_is_loaded(foreign, monkeypatch):
    goes_on = threading.Event()

    def slow(folder, checks, **options):
        options["on_progress"](0.5)
        goes_on.wait(60)
        return load_checked(folder, checks, **options)

    assert foreign.post("/api/v1/trace", json={"text": "the cat"}).status_code == 200
    monkeypatch.setattr("headlight.models.foreign.load_checked", slow)
    answers = []
    asked = {"model": "gpt2", "text": "The cat"}
    threads = [
        threading.Thread(
            target=lambda: answers.append(foreign.post("/api/v1/trace", json=asked).status_code)
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: foreign.get("/api/v1/models/gpt2").json()["progress"] == 0.5)
    assert foreign.get("/api/v1/models/gpt2").json()["state"] == "loading"
    assert foreign.post("/api/v1/trace", json={"text": "a light"}).status_code == 200
    goes_on.set()
    for thread in threads:
        thread.join()
    assert answers == [200, 200]
    assert foreign.get("/api/v1/models/gpt2").json()["state"] == "loaded"


def test_one_that_does_not_fit_is_refused_with_the_figures(client_with, models_dir, problem):
    client = client_with(models_dir=models_dir, memory_bytes=120_000)
    needed = client.get("/api/v1/models/gpt2").json()["memory_bytes"]
    answer = client.post("/api/v1/tokenize", json={"model": "gpt2", "text": "a"})
    body = problem(answer, 503, "model-too-large")
    assert body["limit"] == 120_000
    assert body["actual"] > needed, "the pass counts in addition to the weights"
    assert client.get("/api/v1/models").json()["memory_bytes"] == 120_000
    assert client.get("/api/v1/limits").json()["memory_bytes"]["value"] == 120_000


def test_a_model_generates_and_stays_in_memory_while_it_does(foreign):
    asked = {"model": "gpt2", "text": "The cat", "n_tokens": 3}
    text = foreign.post("/api/v1/generate", json=asked).text
    assert text.count("event: token") == 3
    assert not foreign.app.state.services.registry.memory._uses


TEXT, OTHER = "The cat sat by the dog.", "A naïve café, 12 apples!"


def post(client, path="trace", **members):
    asked = {"model": "gpt2", "text": TEXT, "capture": ["logits"], **members}
    answer = client.post(f"/api/v1/{path}", json=asked)
    assert answer.status_code == 200, answer.text
    return answer


def numbers(answer, site="logits"):
    body = answer if isinstance(answer, dict) else answer.json()
    return np.array(body["tensors"][site]["data"], dtype=np.float32)


@pytest.mark.parametrize("name", ["llama", "mixtral", "gpt_oss", "gemma2"])
def test_generation_returns_every_site_of_a_token(client_with, tmp_path, name):
    client = client_with(model_folders=(str(save_checkpoint(name, tmp_path / name)),))
    asked = {"model": name, "text": TEXT, "capture": ["*"], "temperature": 0, "n_tokens": 3}
    events = written_tokens(client.post("/api/v1/generate", json=asked))
    assert len(events) == 3
    sites = {site["name"] for site in client.get(f"/api/v1/models/{name}").json()["sites"]}
    assert set(events[0]["tensors"]) == sites
    whole = post(client, model=name, capture=["*"])
    for site, tensor in events[0]["tensors"].items():
        if "query" in (axes := whole.json()["tensors"][site]["axes"]):
            expected = numbers(whole, site).take(-1, axes.index("query"))
            data = np.array(tensor["data"], dtype=np.float32)
            np.testing.assert_allclose(data, expected, atol=2e-4, err_msg=site)


def test_a_running_server_lists_what_is_added_and_forgets_what_is_removed(
    client_with, models_dir, tmp_path
):
    client = client_with(models_dir=tmp_path)
    shutil.copytree(models_dir / "gpt2", tmp_path / "later")
    listed = [model["id"] for model in client.get("/api/v1/models").json()["models"]]
    assert "later" in listed
    shutil.rmtree(tmp_path / "later")
    listed = [model["id"] for model in client.get("/api/v1/models").json()["models"]]
    assert "later" not in listed


def test_without_transformers_the_reason_names_the_extra(client_with, models_dir, monkeypatch):
    monkeypatch.setattr("headlight.models.foreign.find_spec", lambda name: None)
    client = client_with(models_dir=models_dir)
    reasons = {
        model["id"]: model["reason"] for model in client.get("/api/v1/models").json()["unavailable"]
    }
    assert "pip install 'headlight-viz[hf]'" in reasons["gpt2"]
    assert client.post("/api/v1/trace", json={"text": "the cat"}).status_code == 200


def test_a_folder_of_the_settings_is_served_where_it_lies(client_with, checkpoints):
    client = client_with(model_folders=(str(checkpoints / "gpt2"),), default_model="gpt2")
    wait_for(lambda: client.get("/readyz").status_code == 200)
    answer = client.post("/api/v1/trace", json={"text": "The cat"}).json()
    assert answer["model"] == "gpt2"
    assert not (checkpoints / "gpt2" / STORED).exists()


def test_the_command_line_traces_a_folder_as_it_is(headlight, checkpoints):
    result = headlight("trace", "The cat", "--model", str(checkpoints / "gpt2"))
    assert result.exit_code == 0, result.output
    assert "likely to come next" in result.stdout


@pytest.fixture(scope="module")
def tiny(settings, tmp_path_factory):
    """Yield a client of a server with a checkpoint of each architecture."""
    folder = tmp_path_factory.mktemp("tiny")
    for name in ARCHITECTURES:
        save_checkpoint(name, folder / name)
    with client_of(settings, models_dir=folder) as client:
        yield client


@pytest.mark.parametrize("unscaled", [False, True])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_terms_on_a_card_give_the_weights_of_the_model(name, unscaled, tiny):
    asked = {"model": name, "text": "The cat sat on the mat, and the dog sat.", "capture": ["*"]}
    if name == "t5":
        asked["target"] = "Ein Hund sat by the door."
    if unscaled:
        asked["edits"] = [{"kind": "no_scaling"}, {"kind": "temperature", "value": 2.0}]
    answer = tiny.post("/api/v1/trace", json=asked, headers={"Accept": "application/x-safetensors"})
    assert answer.status_code == 200, answer.text
    tensors = safetensors.numpy.load(answer.content)
    card = tiny.get(f"/api/v1/models/{name}").json()
    assert len(card["attentions"]) == sum(site.endswith(".weights") for site in tensors)
    for terms in card["attentions"]:
        assert terms["is_exact"]
        changes = (1.0, 2.0) if unscaled else (terms["scale"], 1.0)
        computed = weights_by(terms, tensors, *changes)
        np.testing.assert_allclose(computed, tensors[f"{terms['path']}.weights"], rtol=0, atol=1e-5)


def weights_by(terms, tensors, scale, temperature):
    """Return the weights (head, query, key) in float64, from the terms of a card."""
    path = terms["path"]
    queries, keys = (
        tensors.get(f"{path}.rotated_{part}", tensors.get(f"{path}.{part}")).astype(np.float64)
        for part in ("queries", "keys")
    )
    scores = queries @ keys.swapaxes(-1, -2) * scale
    if terms["softcap"]:
        scores = terms["softcap"] * np.tanh(scores / terms["softcap"])
    if terms["has_bias"]:
        scores += tensors[f"{path}.bias"]
    scores /= temperature
    rows, columns = np.indices(scores.shape[-2:])
    hidden = (columns > rows) & terms["is_causal"]
    if terms["window"]:
        hidden |= abs(rows - columns) >= terms["window"]
    powers = np.where(hidden, 0.0, np.exp(scores))
    total = powers.sum(axis=-1, keepdims=True)
    if terms["has_sink"]:
        total += np.exp(terms["sinks"])[:, None, None]
    return powers / total


@pytest.fixture(scope="module")
def unlike(settings, tmp_path_factory):
    """Yield a client of a server of two models: `short` lacks tokens, `ended` has other ends."""
    path = tmp_path_factory.mktemp("unlike")
    module = make_model("gpt2")
    module.resize_token_embeddings(100)
    module.save_pretrained(path / "short")
    make_tokenizer().save_pretrained(path / "short")
    folder = save_checkpoint("gpt2", path / "ended")
    with client_of(settings, models_dir=path) as client:
        tokens = written_tokens(client.post("/api/v1/generate", json={**GREEDY, "model": "ended"}))
    ends = {"eos_token_id": [319, tokens[2]["id"]], "suppress_tokens": [7]}
    (folder / "generation_config.json").write_text(json.dumps(ends))
    with client_of(settings, models_dir=path) as client:
        yield client, [token["id"] for token in tokens]


GREEDY = {"text": "The cat", "n_tokens": 6, "temperature": 0}


@pytest.mark.parametrize(
    ("path", "members"),
    [
        ("trace", {"text": "\u00ff"}),
        ("tokenize", {"text": "\u00ff"}),
        ("tokenize", {"text": "the cat " * 100 + "\u00ff"}),
        ("generate", {"text": "\u00ff", "n_tokens": 1}),
        ("trace", {"ids": [100]}),
        ("tokenize", {"ids": [100]}),
        ("generate", {"ids": [100], "n_tokens": 1}),
        ("trace", {"text": "!", "predictions": {"tokens": [100]}, "analyses": ["next_token"]}),
    ],
)
def test_a_token_that_the_model_lacks_is_a_problem(unlike, problem, path, members):
    client, _ = unlike
    answer = client.post(f"/api/v1/{path}", json={**members, "model": "short"})
    details = problem(answer, 422, "unknown-token")
    assert "0 to 99" in details["detail"]


def test_a_text_ends_at_each_end_that_the_folder_names(unlike):
    client, ids = unlike
    *_, (_, end) = events_of(client.post("/api/v1/generate", json={**GREEDY, "model": "ended"}))
    first = ids.index(ids[2]) + 1
    assert (end["reason"], end["n_tokens"]) == ("end_of_text", first)
    card = client.get("/api/v1/models/ended").json()
    assert card["omitted"]["generation_config"].startswith("suppress_tokens:")
