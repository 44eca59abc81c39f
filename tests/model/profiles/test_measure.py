"""The profile of every head, compared with sums over single traces."""

import math

import numpy as np
import pytest
import torch

from headlight.model.checkpoint.card import fits, rounded
from headlight.model.checkpoint.loading import load
from headlight.model.checkpoint.profile import SHAPE
from headlight.model.controlled_sentences import antecedent_sentences, subject_sentences
from headlight.model.corpus import CorpusError, SentencePair
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.profiles.ablation import ablated_in
from headlight.model.profiles.measure import profile_heads, sentences_of
from headlight.model.profiles.sums import Sight, Tokens, key_sets
from headlight.model.trace import Token
from headlight.model.tracing import ModelInput, trace

TEXT = (
    'The cat saw a dog, and the dog saw the cat. "It was very tired," said the old fox to me.\n'
    "The mouse crossed the street! Then the lazy dog slept under a tree, and the cat slept too.\n"
) * 3
SETS = "headlight.model.profiles.measure"


@pytest.fixture(autouse=True, scope="module")
def few_controlled_sentences():
    """Two sentences of each set; a tiny vocabulary spells them letter by letter."""
    sets = {"subject": subject_sentences(), "antecedent": antecedent_sentences()}
    with pytest.MonkeyPatch.context() as patch:
        for name, sentences in sets.items():
            chosen = sorted(sentences, key=lambda sentence: len(sentence.text))[:2]
            patch.setattr(f"{SETS}.{name}_sentences", lambda chosen=chosen: chosen)
        yield


@pytest.fixture(scope="module")
def decoder(make_folder):
    return load(make_folder(max_tokens=96, n_heads=2))


@pytest.fixture(scope="module")
def profile(decoder, few_controlled_sentences):
    return profile_heads(decoder, [TEXT])


def test_the_progress_grows_to_the_whole_and_changes_no_number(decoder, profile):
    shares = []
    assert profile_heads(decoder, [TEXT], on_progress=shares.append) == profile
    assert len(shares) > 2
    assert shares == sorted(set(shares))
    assert shares[-1] == 1


def words(*texts, special=()):
    """Tokens of one word each, after a start token."""
    tokens = [Token(id=0, text="<s>", start=0, end=0, word=None, is_special=True)]
    start = 0
    for number, text in enumerate(texts):
        token_id = 1 + sorted(set(texts)).index(text)
        tokens.append(
            Token(
                id=token_id,
                text=text,
                start=start,
                end=start + len(text),
                word=number,
                is_special=text in special,
            )
        )
        start += len(text)
    return tokens


def sight_of(stack="decoder", *, is_cross=False):
    return Sight(stack, is_cross, stack == "decoder" and not is_cross, None, None)


def keys_of(name, query, tokens, **place):
    side = Tokens.of([tokens])
    is_key = key_sets(sight_of(**place), side, side)[name].expand(1, len(tokens), len(tokens))
    return [tokens[key].text for key in np.flatnonzero(is_key[0, query])]


def test_each_score_has_the_keys_that_it_names():
    tokens = words("Doctor", " Mouse", ",", " Doctor", " saw", " Doctor")
    assert keys_of("previous", 4, tokens) == [","]
    assert keys_of("current", 4, tokens) == [" Doctor"]
    assert keys_of("first_token", 4, tokens) == ["<s>"]
    assert keys_of("first_word", 4, tokens) == ["Doctor"]
    assert keys_of("sink", 4, tokens) == ["<s>", "Doctor"]
    assert keys_of("punctuation", 4, tokens) == [","]
    assert keys_of("induction", 6, tokens) == [], "what followed is the previous token"
    longer = words("a", " b", " c", " a", " d")
    longer[4] = longer[1]
    assert keys_of("induction", 4, longer) == [" b"]
    side = Tokens.of([tokens])
    assert "next" not in key_sets(sight_of(), side, side)
    assert keys_of("next", 4, tokens, stack="encoder") == [" saw"]


def test_no_token_is_a_sink_for_itself_or_for_its_own_word():
    tokens = words("Doc", "tor", " saw")
    tokens[2] = Token(id=9, text="tor", start=3, end=6, word=0, is_special=False)
    assert keys_of("first_word", 2, tokens) == []
    assert keys_of("first_word", 3, tokens) == ["Doc", "tor"]
    assert keys_of("sink", 0, tokens) == ["Doc", "tor"]


def test_scores_are_means_over_the_queries_of_all_sentences(decoder, profile):
    inputs = sentences_of(decoder, [TEXT], 1000)
    assert profile["sentences"] == len(inputs) == 12
    path = "decoder.layers.1.self_attention"
    on_previous, uniform, spread, far = [], [], [], []
    for model_input in inputs:
        weights = trace(decoder, model_input.text, capture=["*.weights"])[f"{path}.weights"][1]
        for query in range(2, len(weights)):
            on_previous.append(weights[query, query - 1])
            uniform.append(1 / (query + 1))
        on_previous.append(weights[1, 0])
        uniform.append(1 / 2)
        for query, row in enumerate(weights):
            far.append(sum(w * (query - key) for key, w in enumerate(row[: query + 1])))
            if query:
                row = row[: query + 1]
                spread.append(float(-(row * np.log2(np.maximum(row, 1e-30))).sum()))
    head = profile["attentions"][path][1]
    assert head["scores"]["previous"]["score"] == pytest.approx(np.mean(on_previous), abs=1e-5)
    assert head["scores"]["previous"]["control"] == pytest.approx(np.mean(uniform), abs=1e-6)
    assert head["entropy"] == pytest.approx(np.mean(spread), abs=1e-4)
    assert head["distance"] == pytest.approx(np.mean(far), abs=1e-4)


def test_the_cost_of_a_head_is_what_the_text_takes_more_without_it(decoder, profile):
    def bits(interventions):
        nats = n_bytes = 0
        for model_input in ablated_in(sentences_of(decoder, [TEXT], 1000)):
            traced = trace(
                decoder, model_input.text, capture=["logits"], interventions=interventions
            )
            ids = torch.tensor([token.id for token in traced.tokens])
            logits = torch.from_numpy(traced["logits"])
            losses = torch.nn.functional.cross_entropy(logits[:-1], ids[1:], reduction="sum")
            nats += float(losses)
            n_bytes += len(model_input.text.encode())
        return nats / math.log(2) / n_bytes

    whole = bits(())
    assert profile["ablated_in"] == profile["sentences"] == 12
    assert profile["bits_per_byte"] == pytest.approx(whole, rel=1e-5)
    without = bits([HeadAblation(heads=(1,), layer=0)])
    cost = profile["attentions"]["decoder.layers.0.self_attention"][1]["cost"]
    assert cost == pytest.approx(without - whole, abs=1e-5)
    assert abs(without - whole) > 1e-4


def test_heads_are_switched_off_in_texts_of_median_length():
    inputs = [ModelInput("a" * n, words(*"a" * n)[1:]) for n in (9, 30, 8, 20) * 60]
    assert [each.n_tokens for each in ablated_in(inputs)] == [9] * 60
    assert len(ablated_in(inputs[:99])) == 50


def test_the_strongest_places_can_be_looked_up(decoder, profile):
    path, number = "decoder.layers.0.self_attention", 0
    strongest = profile["attentions"][path][number]["strongest"]
    assert len(strongest) > 1
    assert [strong["weight"] for strong in strongest] == sorted(
        (strong["weight"] for strong in strongest), reverse=True
    )
    for strong in strongest:
        text = profile["examples"][strong["sentence"]]["text"]
        traced = trace(decoder, text, capture=[f"{path}.weights"])
        weight = traced[f"{path}.weights"][number, strong["query"], strong["key"]]
        assert weight == pytest.approx(strong["weight"], abs=1e-5)
        for place in ("query", "key"):
            start, end = strong[f"{place}_span"]
            token = traced.tokens[strong[place]]
            assert text[start:end] == token.text.strip()
        assert 0 < strong["key"] < strong["query"]


def test_a_profile_has_the_shape_that_is_stored(profile):
    assert fits(rounded({"text": ["a"], **profile}), SHAPE)
    assert profile["controlled"] == {"subject": 2, "antecedent": 2}
    scores = profile["attentions"]["decoder.layers.0.self_attention"][0]["scores"]
    assert {"subject", "antecedent", "repetition", "broad", "sink"} <= set(scores)


def test_an_encoder_and_a_translator_have_profiles_too(make_checkpoint):
    small = {"moe": None, "max_tokens": 96, "n_layers": 1}
    heads = profile_heads(make_checkpoint([TEXT] * 3, kind="encoder", **small), [TEXT])
    assert "next" in heads["attentions"]["encoder.layers.0.self_attention"][0]["scores"]
    assert heads["bits_per_byte"] > 0
    pair = SentencePair("The lazy dog slept.", "Le chien dormait.")
    heads = profile_heads(make_checkpoint(kind="encoder-decoder", **small), [pair])
    assert "monotonic" in heads["attentions"]["decoder.layers.0.cross_attention"][0]["scores"]
    encoder = heads["attentions"]["encoder.layers.0.self_attention"][0]["scores"]
    decoder = heads["attentions"]["decoder.layers.0.self_attention"][0]["scores"]
    assert "subject" in encoder
    assert "subject" not in decoder, "the made sentences are English"
    assert heads["examples"] == [{"text": pair.source, "target": pair.target}]
    assert fits(rounded({"text": ["a"], **heads}), SHAPE)


def test_a_text_without_sentences_is_refused(decoder):
    with pytest.raises(CorpusError, match="no sentence of 8 to 48 tokens"):
        profile_heads(decoder, ["Oh!\n"])


# --- controlled sentences -------------------------------------------------------------------------


def test_the_spans_of_controlled_sentences_are_the_words_they_name():
    for sentence in subject_sentences():
        verb, subject, other = (
            sentence.text[slice(*span)] for span in (sentence.query, sentence.right, sentence.other)
        )
        assert (verb == "were") == subject.endswith("s")
        assert subject.endswith("s") != other.endswith("s")
    for sentence in antecedent_sentences():
        pronoun, right, other = (
            sentence.text[slice(*span)] for span in (sentence.query, sentence.right, sentence.other)
        )
        men = {"king", "boy", "father", "prince", "uncle", "man"}
        assert (pronoun in {"he", "him"}) == (right in men) != (other in men)
