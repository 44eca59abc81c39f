"""A token that the model has no row for is an error with a name."""

import pytest

from headlight.model.foreign.model import serve_module
from headlight.model.tracing import UnknownToken, trace
from tests.tiny_checkpoints import make_model


@pytest.mark.parametrize("is_target", [False, True])
def test_a_token_beyond_the_embedding_is_told_at_load_and_in_a_text(served, is_target):
    name = "t5" if is_target else "gpt2"
    whole = served(name)
    module = make_model(name)
    module.resize_token_embeddings(100)
    model = serve_module(module, whole.task, "small", whole.tokenizer)
    assert "tokens, the model 100" in model.description.omitted["tokenizer"]
    assert "tokenizer" not in whole.description.omitted
    texts = ("ab", "\u00ff\u00fe") if is_target else ("\u00ff\u00fe", None)
    with pytest.raises(UnknownToken, match="but the model's ids are 0 to 99"):
        trace(model, *texts)
