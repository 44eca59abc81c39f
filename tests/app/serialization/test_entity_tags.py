"""Equal tags promise equal bytes, whoever compressed them."""

import numpy as np

from headlight.model.trace import NamedArray, Trace
from headlight.serialization import entity_tags
from headlight.serialization.entity_tags import entity_tag
from headlight.serialization.formats import Form
from headlight.serialization.trace import Answer

WEIGHTS = NamedArray(("query", "key"), np.eye(3, dtype=np.float32))
TRACE = Trace(
    model="m", revision="r", precision="float32", text="a", tokens=(), tensors={"w": WEIGHTS}
)
ANSWER = Answer(id="id", trace=TRACE, analyses={})


def test_every_form_has_a_tag_of_its_own():
    forms = [
        Form(),
        Form(dtype="uint16"),
        Form(triangle=True),
        *(Form(coding=coding) for coding in ("zstd", "br", "gzip")),
    ]
    assert len({entity_tag(ANSWER, form) for form in forms}) == len(forms)


def test_another_release_of_a_compressor_has_tags_of_its_own(monkeypatch):
    """Replicas that were built at different times may stand behind one address."""
    plain, coded = Form(), Form(coding="zstd")
    before = {form: entity_tag(ANSWER, form) for form in (plain, coded)}
    monkeypatch.setattr(entity_tags, "LIBRARIES", "others")
    assert entity_tag(ANSWER, plain) == before[plain]
    assert entity_tag(ANSWER, coded) != before[coded]
