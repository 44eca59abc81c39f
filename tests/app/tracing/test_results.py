"""The analyses of requests: each is offered if the model has its sites; its numbers are right."""

from dataclasses import replace

import numpy as np
import pytest

from headlight.analyses.analysis import Choices
from headlight.analyses.analysis_registry import ANALYSES, available
from headlight.analyses.predictions import PredictionsRequest
from headlight.model import tracing
from headlight.model.analysis import alignment, rollout
from headlight.model.analysis.head_outputs import output_weights
from headlight.model.checkpoint.loading import load
from headlight.problems import Problem
from headlight.schemas.traces import TraceAnswer, TraceRequest
from headlight.tracing.results import analyse, n_predictions, sites_of

OF_OTHERS = {"role_shares", "vector", "similarity", "moved_vectors", "patched_vector"}
OF_OTHERS |= {"answer", "moved_scores"}  # of messages and pairs, or without words
EVERY = tuple(name for name in ANALYSES if name not in OF_OTHERS)
WITHOUT = {
    "tiny": {"reward", "alignment"},
    "turning": {"routing", "reward", "alignment"},
    "slanted": {"routing", "reward", "alignment"},
    "translator": {"reward"},
    "filler": {"routing", "reward", "alignment", "head_circuits"},
}
TEXT, TARGET = "the cat sat on the cat", "a small light reads"
NEEDS_OPTIONS = {"patching", "score_attribution"}
METADATA_KEYS = {
    "attention_thread": ["position", "token", "against", "steps"],
    "next_token": ["texts"],
    "logit_lens": ["texts"],
    "head_labels": ["labels"],
    "head_circuits": ["token_texts", "omitted"],
    "alignment": ["aligner"],
    "logit_attribution": ["position", "token", "against", "part_names", "omitted"],
    "quantization_sensitivity": ["parts"],
    "saliency": ["position", "token", "against"],
    "reasons": [
        *("position", "token", "against", "omitted"),
        *("rule", "probabilities", "reasons", "decisive"),
    ],
}


def post(client, model, accept="application/json", **options):
    target = {"target": TARGET} if model == "translator" else {}
    asked = {"text": TEXT, "model": model, "capture": [], **target, **options}
    return client.post("/api/v1/trace", json=asked, headers={"accept": accept})


def analyses_of(client, model, *names, **options):
    response = post(client, model, analyses=list(names), **options)
    assert response.status_code == 200, response.text
    return response.json()["analyses"]


def array(tensor):
    data = np.array(tensor["data"], dtype=tensor["dtype"])
    assert list(data.shape) == tensor["shape"]
    assert len(tensor["axes"]) == data.ndim
    return data


def traced(checkpoint, heads=None):
    target = TARGET if checkpoint.id == "translator" else None
    return tracing.trace(checkpoint, TEXT, target, capture=["*"], heads=heads)


@pytest.mark.parametrize("model", WITHOUT)
def test_a_card_lists_the_analyses_that_its_model_has_the_sites_for(client, model):
    card = client.get(f"/api/v1/models/{model}").json()
    assert card["analyses"] == [name for name in EVERY if name not in WITHOUT[model]]


@pytest.mark.parametrize("model", WITHOUT)
def test_json_and_safetensors_agree_and_are_what_the_documentation_says(
    client, from_safetensors, model
):
    by_one_text = [name for name in EVERY if name not in WITHOUT[model] | NEEDS_OPTIONS]
    asked = {"capture": ["*"], "analyses": by_one_text}
    body = post(client, model, **asked).json()
    documented = TraceAnswer.model_validate(body, strict=True)
    assert documented.model_dump(exclude_unset=True) == body
    response = post(client, model, **asked, accept="application/x-safetensors")
    arrays, metadata = from_safetensors(response.content)
    assert set(metadata["analyses"]) == set(body["analyses"]) == set(asked["analyses"])
    for name, answer in body["analyses"].items():
        metadata_keys = METADATA_KEYS.get(name, [])
        assert metadata["analyses"][name] == {key: answer.pop(key) for key in metadata_keys}
        assert answer or name == "reasons"  # without a split of the logits, no arrays
        for key, sent in answer.items():
            site = f"analyses.{name}.{key}"
            assert metadata["axes"][site] == sent["axes"]
            assert np.isfinite(arrays[site]).all(), site
            np.testing.assert_array_equal(arrays.pop(site), array(sent))
    assert set(arrays) == set(body["tensors"])
    assert metadata["target"] == body["target"]
    infinite = {site for site, data in arrays.items() if not np.isfinite(data).all()}
    causal = {f"decoder.layers.{layer}.self_attention.scores" for layer in (0, 1)}
    assert infinite == (set() if model == "filler" else causal), "only masked scores"


# --- what they say --------------------------------------------------------------------------------


def test_the_lens_after_the_last_layer_is_the_prediction_of_the_edited_pass(client):
    edits = [{"kind": "heads_off", "heads": [0, 2]}, {"kind": "experts_off", "experts": [1]}]
    analyses = analyses_of(client, "tiny", "logit_lens", "next_token", edits=edits)
    lens, prediction = (
        array(analyses[name]["probabilities"]) for name in ("logit_lens", "next_token")
    )
    np.testing.assert_allclose(lens[-1], prediction, atol=1e-6)


def test_analyses_read_all_layers_unless_they_tell_each_layer_for_itself(client):
    sites = {"capture": ["*.weights"], "layers": [1]}
    narrow = analyses_of(client, "tiny", "rollout", "head_labels", **sites)
    every = analyses_of(client, "tiny", "rollout", "head_labels")
    assert narrow["rollout"] == every["rollout"]
    assert array(narrow["rollout"]["decoder"]).shape[0] == 2
    labels = {name: every["head_labels"][name] for name in narrow["head_labels"]}
    assert narrow["head_labels"] == labels
    assert {name[:16] for name in labels if "." in name} == {"decoder.layers.1"}


def test_analyses_read_only_the_heads_that_heads_says(client, tiny):
    analyses = analyses_of(client, "tiny", "rollout", "head_labels", heads=[2, 0])
    expected = rollout.rollout(traced(tiny, [2, 0]))["decoder"].data
    np.testing.assert_allclose(array(analyses["rollout"]["decoder"]), expected, atol=1e-6)
    label = "decoder.layers.1.self_attention.label_scores"
    every = array(analyses_of(client, "tiny", "head_labels")["head_labels"][label])
    np.testing.assert_allclose(array(analyses["head_labels"][label]), every[[2, 0]], atol=1e-6)


@pytest.mark.parametrize("name", ["next_token", "logit_lens"])
@pytest.mark.parametrize("model", ["tiny", "filler"])
def test_of_a_long_text_no_logits_are_read(zoo, model, name):
    description = load(zoo / model).description
    assert "logits" in sites_of([name], description)
    stack = "encoder" if model == "filler" else "decoder"
    streams = [f"{stack}.layers.{layer}.residual.after" for layer in (0, 1)]
    long = sites_of([name], description, is_long=True)
    assert long == (streams if name == "logit_lens" else streams[1:])


def test_without_logits_no_probability_of_being_sampled_is_computed(tiny):
    trace = tracing.trace(tiny, TEXT, capture=["decoder.layers.1.residual.after"])
    assert "probabilities" in analyse("next_token", trace, tiny).arrays
    with pytest.raises(Problem, match="next_token: the logits of this text are not held at once"):
        analyse(
            "next_token",
            trace,
            tiny,
            Choices({PredictionsRequest: PredictionsRequest(temperature=1.0)}),
        )


def test_output_weights_are_those_of_attentions_whose_context_or_weights_are_held(tiny):
    first, second = (f"decoder.layers.{layer}.self_attention" for layer in (0, 1))
    for part, paths in {"weights": [second], "context": [second], "queries": []}.items():
        trace = tracing.trace(tiny, TEXT, capture=[f"{first}.values", f"{second}.{part}"])
        matrices = output_weights(trace, tiny)
        assert list(matrices) == [f"{path}.output_projection.weight" for path in paths]


# --- alignment ------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [None, [3, 2]])
def test_words_are_aligned_by_the_head_that_the_card_names(client, translator, heads):
    options = {} if heads is None else {"heads": heads}
    answer = analyses_of(client, "translator", "alignment", **options)["alignment"]
    assert answer["aligner"] == {"layer": 1, "head": 2, "shift": 0}
    expected = alignment.alignment(traced(translator), {"layer": 1, "head": 2})
    np.testing.assert_allclose(array(answer["weights"]), expected["weights"].data, atol=1e-6)
    np.testing.assert_array_equal(array(answer["links"]), expected["links"].data)
    assert answer["weights"]["axes"] == ["target_word", "source_word"]
    np.testing.assert_allclose(array(answer["weights"]).sum(axis=1), 1, atol=1e-6)


def test_words_are_aligned_by_the_mean_of_other_heads_where_the_cards_is_left_out(
    client, translator
):
    answer = analyses_of(client, "translator", "alignment", heads=[0, 1])["alignment"]
    assert answer["aligner"] == {}
    expected = alignment.alignment(traced(translator, [0, 1]))["weights"].data
    np.testing.assert_allclose(array(answer["weights"]), expected, atol=1e-6)


@pytest.mark.parametrize(
    "figures",
    [
        None,
        "none",
        {"head": "2"},
        {"head": {"layer": 2, "head": 2, "shift": 0}},
        {"head": {"layer": 1, "head": 2, "shift": 2}},
    ],
)
def test_a_card_that_names_no_head_leaves_the_mean_of_all(translator, figures):
    card = replace(translator.description.card, metrics={"alignment": figures})
    checkpoint = replace(translator, description=replace(translator.description, card=card))
    trace = traced(translator)
    result = analyse("alignment", trace, checkpoint)
    assert result.metadata == {"aligner": {}}
    expected = alignment.alignment(trace)["weights"].data
    np.testing.assert_array_equal(result.arrays["weights"].data, expected)


# --- texts with little in them --------------------------------------------------------------------


def test_a_translation_of_nothing_is_analysed_but_not_aligned(client, problem, monkeypatch):
    monkeypatch.setattr("headlight.model.checkpoint.checkpoint.translate", lambda *_, **__: [[]])
    options = {"text": "the cat", "target": None}
    body = problem(
        post(client, "translator", analyses=["alignment"], **options), 422, "nothing-to-analyse"
    )
    assert body["detail"] == "alignment: the target has no words to align"
    names = {"alignment", "reward", "quantization_sensitivity", *NEEDS_OPTIONS}
    possible = [name for name in EVERY if name not in names]
    body = post(client, "translator", analyses=possible, **options).json()
    assert body["target"] == ""
    assert [token["text"] for token in body["target_tokens"]] == ["<s>"]
    assert set(body["analyses"]) == set(possible)


@pytest.mark.parametrize("text", ["[MASK]", "[MASK] [MASK][MASK]"])
def test_a_text_of_only_masks_is_analysed(client, zoo, text):
    offered = available(load(zoo / "filler").description)
    names = [name for name in offered if name not in NEEDS_OPTIONS]
    body = post(client, "filler", text=text, analyses=names).json()
    assert set(body["analyses"]) == set(names)
    assert all(token["is_special"] for token in body["tokens"])


def test_an_error_in_an_analysis_names_it(translator):
    trace = replace(traced(translator), target_tokens=None)
    with pytest.raises(Problem, match=r"head_labels: decoder\.layers\.0"):
        analyse("head_labels", trace, translator)


# --- a logit difference ---------------------------------------------------------------------------


def explained(client, model, status=200, **asked):
    options = {"analyses": ["logit_attribution"], "logit_difference": asked}
    response = post(client, model, **options)
    assert response.status_code == status, response.text
    return response.json()["analyses"]["logit_attribution"] if status == 200 else response.json()


def test_the_likeliest_two_tokens_at_the_end_are_compared_by_default(client):
    answer = explained(client, "tiny")
    ids = analyses_of(client, "tiny", "next_token")["next_token"]["ids"]["data"]
    assert answer["position"] == len(ids) - 1
    assert [answer["token"]["id"], answer["against"]["id"]] == ids[-1][:2]


def test_a_token_is_named_by_its_text_as_well(client):
    answer = explained(client, "tiny", token=" cat")
    assert answer["token"]["text"] == " cat"


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ({"position": 900}, "nothing-to-analyse"),
        ({"token": 5, "against": 5}, "nothing-to-analyse"),
        ({"token": 10**6}, "unknown-token"),
        ({"token": " no single token at all"}, "not-one-token"),
        ({"position": -1}, "invalid-request"),
    ],
)
def test_an_impossible_logit_difference_is_a_problem(client, asked, kind):
    assert explained(client, "tiny", 422, **asked)["type"].endswith(kind)


def test_a_text_of_several_tokens_is_refused_with_the_first_four_of_them(client, tiny):
    text = " the cat sat on the mat"
    first, *_, last = (token.text for token in tiny.tokenizer.encode(text) if token.is_typed)
    told = explained(client, "tiny", 422, token=text)["detail"].replace(f"'{text}'", "")
    assert f"'{first}', " in told
    assert f"'{last}'" not in told


@pytest.mark.parametrize("option", ["predictions", "logit_difference", "patching"])
def test_an_option_that_no_analysis_reads_is_a_problem(client, option):
    asked = {"analyses": ["rollout"], option: {"text": OTHER_TEXT} if option == "patching" else {}}
    response = post(client, "tiny", **asked)
    assert (response.status_code, response.json()["type"][22:]) == (422, "unread-option")
    assert response.json()["detail"].startswith(f"{option} is read by no analysis")


def test_a_model_that_normalises_its_stream_is_a_sum_behind_its_norms(client):
    answer = explained(client, "filler")
    logits, parts = (array(answer[name]) for name in ("logits", "parts"))
    assert parts.sum() == pytest.approx(logits[0] - logits[1], abs=1e-5)
    assert abs(parts[-1]) < 1e-5
    details = post(client, "filler", analyses=["head_circuits"]).json()
    assert "normalises what its parts write" in details["detail"]


def test_another_difference_is_another_trace(client):
    ids = {
        post(client, "tiny", analyses=["logit_attribution"], logit_difference=asked).json()["id"]
        for asked in ({}, {"position": 1}, {"position": 1, "token": 9})
    }
    assert len(ids) == 3


# --- another text ---------------------------------------------------------------------------------

OTHER_TEXT = "the cat sat on the mat"


def patched(client, model="tiny", status=200, **patching):
    response = post(client, model, analyses=["patching"], patching={"text": OTHER_TEXT, **patching})
    assert response.status_code == status, response.text
    return response.json()["analyses"]["patching"] if status == 200 else response.json()


@pytest.mark.parametrize("model", ["tiny", "turning", "filler"])
def test_the_other_text_is_patched_in(client, model):
    answer = patched(client, model, parts=["residual", "attention", "feed_forward", "heads"])
    stack = "encoder" if model == "filler" else "decoder"
    shares = array(answer[f"{stack}.residual"])
    assert shares.shape == (2, len(answer["other_tokens"]))
    assert shares[0].sum() == pytest.approx(1, abs=0.3)
    assert array(answer[f"{stack}.self_attention.heads"]).shape == (2, 4)
    documented = TraceAnswer.model_fields["analyses"].annotation
    assert documented.model_validate({"patching": answer}).patching is not None


def test_patching_without_a_text_or_with_one_of_another_length_is_a_problem(client):
    lacking = post(client, "tiny", analyses=["patching"]).json()
    assert "send it as patching.text" in lacking["detail"]
    longer = patched(client, status=422, text=f"{OTHER_TEXT} on the mat")
    assert longer["type"].endswith("nothing-to-analyse")
    assert patched(client, status=422, text="")["type"].endswith("empty-text")
    assert patched(client, status=422, parts=[])["type"].endswith("invalid-request")


def test_the_edit_patch_is_a_set_from_another_text(client):
    site = {"site": "decoder.layers.1.residual.before", "positions": [3]}
    answers = [
        post(client, "tiny", capture=["logits"], edits=[{"kind": kind, **site, **source}]).json()
        for kind, source in (
            ("patch", {"from": {"text": "a cat sat"}}),
            ("set", {"from": {"text": "a cat sat"}}),
        )
    ]
    assert answers[0]["tensors"] == answers[1]["tensors"]
    plain = post(client, "tiny", capture=["logits"]).json()
    assert answers[0]["tensors"] != plain["tensors"]
    refused = post(client, "tiny", edits=[{"kind": "patch", **site}])
    assert refused.status_code == 422


def test_the_numbers_of_predictions_are_counted(tiny):
    model_input = tracing.tokenize(tiny, TEXT)

    def counted(**predictions):
        request = TraceRequest(text=TEXT, analyses=["next_token"], predictions=predictions)
        return n_predictions(request, tiny.description, model_input)

    n_rows = len(model_input.tokens)
    assert counted(top=5) == n_rows * 3 * 5
    assert counted(top=5, following=True) == n_rows * (3 * 5 + 1)
    assert counted(top=5, tokens=[1, 2]) == n_rows * 3 * 7


def test_the_probability_of_each_token_that_follows_is_sent_if_it_is_asked_for(client, tiny):
    logits = traced(tiny)["logits"].astype(np.float64)
    ids = [token.id for token in tiny.tokenizer.encode(TEXT)]
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    next_token = analyses_of(client, "tiny", "next_token", predictions={"following": True})[
        "next_token"
    ]
    expected = shares[np.arange(len(ids) - 1), ids[1:]]
    np.testing.assert_allclose(array(next_token["following"]), expected, atol=1e-6)
    assert "following" not in analyses_of(client, "tiny", "next_token")["next_token"]
