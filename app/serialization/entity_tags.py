"""Entity tags of kept answers: equal ones promise equal bytes (RFC 9110, section 8.8.3).

A tag is a hash of what is sent and of the form it is sent in, so it is known without encoding
anything. It is made of the numbers themselves: a trace that is computed again after it was dropped
may differ in its last bits, as texts that share a pass are added up in another order, and has
another tag then.
"""

import hashlib
from importlib.metadata import version

from headlight.serialization.compression import LIBRARIES
from headlight.serialization.formats import Form
from headlight.serialization.trace import Answer


def entity_tag(answer: Answer, form: Form) -> str:
    """The strong tag of an answer in a form, quotes included."""
    sent_as = (form.media_type, form.dtype, str(form.triangle), form.coding)
    made_by = (version("headlight"), "" if form.coding == "identity" else LIBRARIES)
    named = "\n".join((answer.digest, *made_by, *sent_as))
    return f'"{hashlib.sha256(named.encode()).hexdigest()[:32]}"'
