"""Models that predict labels, answers, scores or nothing, against the library's own outputs."""

import inspect
import json

import numpy as np
import pytest
import tokenizers
import torch
import transformers

from headlight.analyses.analysis import Choices
from headlight.analyses.analysis_registry import ANALYSES, available
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign.live import load_live
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.model import load_foreign
from headlight.model.tokenizer import NoPair
from headlight.model.tracing import tokenize, trace
from tests.tiny_checkpoints import GPT, GROUPED, MORE, SIZES

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "the", "cat", "sat", "dog", "lay", "on"]
WORDS += ["mat", ".", "who", "where", "?"]
TEXT, PAIR = "the cat sat on the mat .", "who sat ?"
TYPES = {
    "Bert": SIZES,
    "DistilBert": MORE["distilbert"][1],
    "ModernBert": MORE["modernbert"][1],
    "DebertaV2": {**SIZES, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "GPT2": GPT,
    "Llama": GROUPED,
}
HEADS = {
    "ForSequenceClassification": "label",
    "ForTokenClassification": "token_label",
    "ForQuestionAnswering": "answer",
    "ForMultipleChoice": "score",
    "Model": "vector",
}
CASES = [("Bert", head) for head in HEADS] + [
    ("ModernBert", "ForSequenceClassification"),
    ("DebertaV2", "Model"),
    ("GPT2", "ForSequenceClassification"),
    ("Llama", "ForTokenClassification"),
]


def make(kind, **changes):
    """Return a random model of the library."""
    torch.manual_seed(3)
    with quiet():
        sizes = TYPES[next(name for name in TYPES if kind.startswith(name))]
        config = getattr(transformers, kind).config_class(**{**sizes, **changes})
        model = getattr(transformers, kind)(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.25)
    return model


def make_tokenizer():
    """Return a tokenizer of words that reads pairs as BERT's does."""
    vocabulary = {word: at for at, word in enumerate(WORDS)}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    names = {name: f"[{name[:4].rstrip('_').upper()}]" for name in ("pad_token", "cls_token")}
    names |= {"sep_token": "[SEP]", "mask_token": "[MASK]", "unk_token": "[UNK]"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **names,
    )


def serve(kind, **changes):
    """Return a model, served, with its own copy of the library."""
    model = make(kind, **changes)
    return load_live(model, make_tokenizer()), model


def read(served, *texts, capture=("*",)):
    """Return a trace of a text or a pair, with every site."""
    text, pair = [*texts, None][:2]
    return trace(served, text, text_pair=pair, capture=capture)


def analyse(name, served, traced, **options):
    """Return an analysis of a trace."""
    given = {kind: kind(**options) for kind in ANALYSES[name].options if options}
    return ANALYSES[name].compute(traced, served, Choices(given))


@pytest.mark.parametrize(("kind", "head"), CASES)
def test_the_output_and_the_weights_are_those_of_the_library(kind, head):
    served, model = serve(kind + head, **({"num_labels": 3} if "Class" in head else {}))
    assert served.description.predicts == HEADS[head]
    traced = read(served, TEXT, PAIR)
    inputs = dict(make_tokenizer()(TEXT, PAIR, return_tensors="pt"))
    assert [token.id for token in traced.tokens] == inputs["input_ids"][0].tolist()
    if "token_type_ids" not in inspect.signature(model.forward).parameters:
        del inputs["token_type_ids"]
    if head == "ForMultipleChoice":
        inputs = {name: value[None] for name, value in inputs.items()}
    with quiet(), torch.inference_mode():
        model.set_attn_implementation("eager")
        library = model(**inputs, output_attentions=True)
    expected = {
        "label": lambda: library.logits,
        "token_label": lambda: library.logits[0],
        "answer": lambda: torch.stack([library.start_logits[0], library.end_logits[0]], 1),
        "score": lambda: library.logits[0],
        "vector": lambda: library.last_hidden_state[0],
    }[HEADS[head]]().numpy()
    site = {"answer": "answer_logits", "score": "reward", "vector": "last_hidden_state"}
    output = traced[site.get(HEADS[head], "logits")]
    output = output[-1:] if HEADS[head] in ("label", "score") else output
    np.testing.assert_allclose(output, expected, atol=2e-6)
    weights = [array.data for name, array in traced.tensors.items() if name.endswith("n.weights")]
    for made, theirs in zip(weights, library.attentions, strict=True):
        np.testing.assert_allclose(made, theirs[0].numpy(), atol=1e-6)


@pytest.mark.parametrize("mode", ["mean", "cls", "max"])
def test_a_vector_is_pooled_as_its_folder_says_and_a_similarity_is_a_sum(tmp_path, mode):
    save(tmp_path, mode)
    served = load_foreign(tmp_path)
    traced, other = read(served, "the cat sat ."), read(served, "the dog lay on the mat .")
    hidden, second = (torch.tensor(each["last_hidden_state"]) for each in (traced, other))

    def pooled(of):
        vector = {"mean": of.mean(0), "cls": of[0], "max": of.max(0).values}[mode]
        return torch.nn.functional.normalize(vector, dim=0)

    (vector,) = analyse("vector", served, traced).arrays.values()
    np.testing.assert_allclose(vector.data, pooled(hidden), atol=1e-6)
    result = analyse("similarity", served, traced, text="the dog lay on the mat .", heads=True)
    expected = float(pooled(hidden) @ pooled(second))
    assert result.metadata["similarity"] == pytest.approx(expected, abs=1e-6)
    assert result.arrays["pairs"].data.sum() == pytest.approx(expected, abs=1e-5)
    off = {"kind": "set", "site": "encoder.layers.1.self_attention.context", "value": 0.0}
    from headlight.model.interventions.site_edit import SiteEdit

    edits = [SiteEdit(**off, heads=(2,))]
    without = [
        torch.tensor(
            trace(served, text, capture="last_hidden_state", interventions=edits)[
                "last_hidden_state"
            ]
        )
        for text in ("the cat sat .", "the dog lay on the mat .")
    ]
    assert result.arrays["heads"].data[1, 2] == pytest.approx(
        float(pooled(without[0]) @ pooled(without[1])), abs=1e-5
    )
    moved = analyse("moved_vectors", served, traced).arrays["heads"].data[1, 2]
    away = float((pooled(without[0]) - pooled(hidden)).norm())
    assert moved == pytest.approx(away, abs=1e-5)
    patched = analyse("patched_vector", served, traced, text="the dog lay .").arrays
    assert patched["encoder.residual"].data.shape == (2, 6)
    if mode == "mean":  # all of the first stream together is the other text
        assert patched["encoder.residual"].data[0].sum() != pytest.approx(0, abs=1e-3)


def save(folder, mode, **lies):
    """Write a folder as sentence-transformers does."""
    with quiet():
        make("BertModel").save_pretrained(folder)
        make_tokenizer().save_pretrained(folder)
    kinds = ["Transformer", "Pooling", "Normalize"]
    modules = [
        {"idx": at, "path": f"{at}_{kind}" if at else "", "type": f"sentence_transformers.{kind}"}
        for at, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    names = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
    options = {f"pooling_mode_{name}": key == mode for key, name in names.items()}
    options |= {"word_embedding_dimension": 32, **lies}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(options))


def test_a_pooling_that_lies_or_is_not_known_is_told(tmp_path):
    (tmp_path / "wide").mkdir()
    save(tmp_path / "wide", "mean", word_embedding_dimension=768)
    with pytest.raises(CheckpointError, match=r"word_embedding_dimension \(768\) must be"):
        load_foreign(tmp_path / "wide")
    (tmp_path / "two").mkdir()
    save(tmp_path / "two", "mean", pooling_mode_cls_token=True)
    description = load_foreign(tmp_path / "two").description
    assert "names no pooling that is read" in description.omitted["vector"]
    assert "vector" not in available(description)


def test_labels_stand_where_words_do():
    names = {0: "bad", 1: "good", 2: "so"}
    served, _ = serve("BertForSequenceClassification", id2label=names)
    traced = read(served, TEXT)
    result = analyse("next_token", served, traced)
    assert set(result.metadata["texts"][0]) == set(names.values())
    reasons = analyse("reasons", served, traced).metadata
    assert reasons["token"]["text"] == result.metadata["texts"][0][0]
    part = reasons["reasons"][0]
    probabilities = np.exp(traced["logits"][0]) / np.exp(traced["logits"][0]).sum()
    assert reasons["probabilities"][0] == pytest.approx(probabilities.max(), abs=1e-6)
    assert part["probabilities"][0] < reasons["probabilities"][0]
    served, _ = serve("BertForSequenceClassification", id2label={0: "so", 1: "so", 2: "no"})
    assert served.description.labels == ("0: so", "1: so", "2: no")


def test_labels_of_which_several_may_be_right_have_probabilities_of_their_own():
    served, _ = serve(
        "BertForSequenceClassification", num_labels=3, problem_type="multi_label_classification"
    )
    traced = read(served, TEXT)
    shown = analyse("next_token", served, traced).arrays
    logits = traced["logits"][0][shown["ids"].data[0]]
    np.testing.assert_allclose(shown["probabilities"].data[0], 1 / (1 + np.exp(-logits)), atol=1e-6)
    reasons = analyse("reasons", served, traced).metadata
    assert reasons["probabilities"][0] == pytest.approx(float(shown["probabilities"].data[0, 0]))


def test_a_label_of_a_decoder_is_the_sum_of_its_parts_and_of_a_curved_head_the_rest_is_told():
    for family, is_curved in (("Llama", False), ("ModernBert", True)):
        served, _ = serve(f"{family}ForSequenceClassification", num_labels=3)
        result = analyse("logit_attribution", served, read(served, TEXT))
        first, second, *_ = result.arrays["logits"].data
        assert result.arrays["parts"].data.sum() == pytest.approx(first - second, abs=1e-4)
        remainder = result.metadata["omitted"].get("remainder")
        assert "slope here frozen" in remainder if is_curved else remainder is None


def test_a_score_of_a_decoder_is_that_of_each_beginning():
    served, _ = serve("GPT2ForSequenceClassification", num_labels=1)
    whole = read(served, TEXT)["reward"]
    ids = [token.id for token in tokenize(served, TEXT).tokens]
    half = trace(served, ids=ids[:4], capture="reward")["reward"]
    np.testing.assert_allclose(whole[:4], half, atol=2e-6)
    assert "contributions" in analyse("reward", served, read(served, TEXT)).arrays


def test_an_answer_lies_in_the_second_text_and_moves_without_a_head():
    served, _ = serve("BertForQuestionAnswering")
    traced = read(served, PAIR, TEXT)
    said = analyse("answer", served, traced).metadata
    logits = traced["answer_logits"]
    spans = [
        (logits[start, 0] + logits[end, 1], start, end)
        for start, first in enumerate(traced.tokens)
        for end, last in enumerate(traced.tokens)
        if first.role == last.role == "second" and start <= end
    ]
    assert (said["start"], said["end"]) == max(spans)[1:]
    assert said["text"] in TEXT
    moved = analyse("moved_scores", served, traced).arrays
    assert moved["before"].data[0] == pytest.approx(float(max(spans)[0]), abs=1e-5)
    assert np.abs(moved["heads"].data).max() > 0


def test_the_two_texts_of_a_pair_share_the_attention_of_a_head():
    served, _ = serve("BertModel")
    traced = read(served, TEXT, PAIR)
    assert traced.text == f"{TEXT}\n{PAIR}"
    result = analyse("role_shares", served, traced)
    assert result.metadata["roles"] == ["template", "first", "second"]
    shares = result.arrays["encoder.layers.0.self_attention"].data
    np.testing.assert_allclose(shares.sum(-1), 1, atol=1e-6)
    with pytest.raises(NoPair):
        tokenize(load_live(make("LlamaForCausalLM"), make_tokenizer()), TEXT, text_pair=PAIR)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id2label": {"0": "a", "5": "b", "1": "c"}}, "ids of id2label must be 0 to 2"),
        ({"id2label": {"0": "a", "1": "b"}}, "has another shape"),
        ({"id2label": {"0": "a", "1": "b", "2": ""}}, "name each label"),
        ({"id2label": None, "num_labels": 10**6}, "must be at most 100,000"),
    ],
)
def test_labels_that_disagree_with_the_head_are_refused(tmp_path, changes, said):
    with quiet():
        make("BertForSequenceClassification", num_labels=3).save_pretrained(tmp_path)
        make_tokenizer().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    config.pop("label2id", None)
    config |= changes
    path.write_text(
        json.dumps({name: value for name, value in config.items() if value is not None})
    )
    with pytest.raises(CheckpointError, match=said):
        load_foreign(tmp_path)
