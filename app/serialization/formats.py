"""How an answer is sent: its media type, the type of its numbers, what is left out, its coding.

None of it changes what was computed, so an answer is kept once and sent in any form. Equal answers
in equal forms are equal bytes, which is what a strong ETag promises.
"""

from dataclasses import dataclass, replace
from typing import Literal

from headlight.schemas.traces import DType

Coding = Literal["identity", "zstd", "br", "gzip"]

JSON = "application/json"
SAFETENSORS = "application/x-safetensors"
MEDIA_TYPES = (JSON, SAFETENSORS)


LEAST_BYTES = 1_400
"""What fits into one packet gains nothing from being smaller."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """How an answer is sent.

    `dtype` uint16 sends numbers between 0 and 1 as value/65535; `triangle` leaves out what lies
    above the diagonal of causal arrays; `coding` is the Content-Encoding, and `small_coding` that
    of an answer too small to gain from compression.
    """

    media_type: str = JSON
    dtype: DType = "float32"
    triangle: bool = False
    coding: Coding = "identity"
    small_coding: Coding = "identity"

    def sized(self, n_bytes: int) -> "Form":
        """This form with the content coding of an answer of about that size."""
        return self if n_bytes >= LEAST_BYTES else replace(self, coding=self.small_coding)

    @property
    def headers(self) -> dict[str, str]:
        """What is said beside the Content-Type of an answer in this form."""
        vary = {"Vary": "Accept, Accept-Encoding"}
        return vary if self.coding == "identity" else vary | {"Content-Encoding": self.coding}
