"""Every limit and knob of the server, with its default, its unit and its reason.

Each is read once, in `create_app`, from the environment variable `HEADLIGHT_<NAME>`:

    HEADLIGHT_MAX_CELLS=8000000 HEADLIGHT_DEVICE=cuda headlight serve

`GET /api/v1/limits` is made from the fields that carry a unit.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Self

from pydantic import Field
from pydantic.fields import FieldInfo
from pydantic_settings import SettingsConfigDict

from headlight.exposure import Exposure
from headlight.limit import Limit
from headlight.limit import limit as _limit

ENV_PREFIX = "HEADLIGHT_"
_PACKAGE = Path(__file__).resolve().parent
HOME = _PACKAGE if (_PACKAGE / "static").is_dir() else _PACKAGE.parent
"""Holds static/, templates/ and model/: an installed package, or the checkout."""

# What a host is compared with; nobody listens there who was not told to.
ANY_ADDRESS = ("0.0.0.0", "::")  # nosec B104

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["float32", "bfloat16"]
LogFormat = Literal["text", "json"]
LogLevel = Literal["error", "warning", "info", "debug"]


class Settings(Exposure):
    """What the server was told; validated on construction, frozen after it."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_ignore_empty=True,
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,  # a key that was mistyped is still a secret
    )

    max_characters: int = _limit(
        4_000,
        "characters",
        "More than the shipped models can read; counted before anything else touches the text, "
        "because normalising or splitting a hostile text can take far longer than reading it.",
        refusal="422 too-many-characters",
        ge=1,
    )
    max_cells: int = _limit(
        8_000_000,
        "numbers",
        "The numbers captured for one answer: attention grows as layers × heads × tokens². "
        "8 million are 32 MB as float32 and about 90 MB as JSON.",
        refusal="422 too-many-cells",
        ge=1,
    )
    max_body_bytes: int = _limit(
        131_072,
        "bytes",
        "Room for two texts of max_characters written as 12-byte escapes, and for the options.",
        refusal="413 body-too-large",
        ge=1,
    )
    max_header_bytes: int = _limit(
        32_768,
        "bytes",
        "A request's target and headers together: several times what a browser sends with all the "
        "cookies of a domain.",
        refusal="431 headers-too-large",
        ge=1_024,
    )
    max_new_tokens: int = _limit(
        256,
        "tokens",
        "Tokens that one request may have written: as many as the shipped models can read.",
        refusal="422 too-many-new-tokens",
        ge=1,
    )
    max_streams: int = _limit(
        8,
        "streams",
        "Texts that are written on at one time; their tokens take turns on the inference thread, "
        "with whatever else is asked, so more of them would only make each slower.",
        refusal="503 too-many-streams",
        ge=1,
    )
    stream_patience_seconds: float = _limit(
        30.0,
        "seconds",
        "How long a client may leave an event of its stream unread before the stream is cut: its "
        "place is wanted by others.",
        gt=0,
    )
    queue_length: int = _limit(
        64,
        "requests",
        "Requests that may wait for the inference thread; one more is refused at once, "
        "so that nobody waits for an answer that will not come.",
        refusal="503 queue-full",
        ge=0,
    )
    queue_seconds: float = _limit(
        10.0,
        "seconds",
        "How long a request may wait for the inference thread before it is refused.",
        refusal="503 queue-timeout",
        gt=0,
    )
    work_seconds: float = _limit(
        30.0,
        "seconds",
        "How long one piece of work (a trace, or one token of a text that is written on) may take "
        "before its client is refused and the pass stops: far longer than the slowest answer that "
        "max_cells allows takes on one slow core.",
        refusal="504 too-slow",
        gt=0,
    )
    max_batch: int = _limit(
        32,
        "requests",
        "Requests that wait together and are read in one pass at most: a larger batch gains little "
        "more on a processor, and who comes next waits for all of it.",
        ge=1,
    )
    cache_bytes: int = _limit(
        33_554_432,
        "bytes",
        "What finished traces may take in memory together, so that the same question asked again "
        "costs no pass: about seven hundred default traces of a sentence. 0 keeps none.",
        ge=0,
    )
    max_outgoing_bytes: int = _limit(
        536_870_912,
        "bytes",
        "What answers may take in memory together from when they are encoded until their clients "
        "have read them: with max_cells, three of the largest as JSON and many smaller ones. Until "
        "it is encoded one counts for as much as it may take. Who alone asks for more has it.",
        refusal="503 too-many-outgoing-bytes",
        ge=1,
    )
    retry_after_seconds: int = _limit(
        1,
        "seconds",
        "What a refused request is told to wait before it tries again (Retry-After).",
        ge=0,
    )
    shutdown_seconds: int = _limit(
        5,
        "seconds",
        "How long open answers may go on after the server was told to stop.",
        refusal="503 server-stopping",
        ge=0,
    )

    host: str = Field(
        "127.0.0.1",
        description="Address to listen on; `0.0.0.0` or `::` for every one of this machine.",
    )
    port: int = Field(8000, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    device: Device = Field(
        "auto", description="Where models run; auto takes cuda, then mps, then cpu."
    )
    precision: Precision = Field(
        "float32",
        description="What models compute in. In bfloat16 numbers agree to two or three digits; "
        "it halves the memory, and is faster where the processor has units for it.",
    )
    threads: int = Field(
        1,
        ge=0,
        description="CPU threads for one forward pass; 0: as many as PyTorch likes. At the size of "
        "the models that ship a second one gains nothing on an idle machine, and on a busy one "
        "makes a pass take ten times as long, as threads wait for each other.",
    )
    default_model: str = Field(
        "stories", description="The model that answers when a request names none."
    )
    zoo_dir: Path = Field(
        HOME / "model" / "zoo", description="The models that ship, one folder each."
    )
    models_dir: Path | None = Field(
        None, description="More models, one folder each; a folder's name is the model's id."
    )
    log_level: LogLevel = Field(
        "warning",
        description="How much is logged: at info a line for every request. No level logs a text, "
        "only its length and a hash of it that nobody else can compute.",
    )
    log_format: LogFormat = Field(
        "text", description="Lines for people, or one JSON object a line for a collector."
    )
    log_clients: bool = Field(
        False, description="Whether the line of a request names the address that it came from."
    )
    metrics: bool = Field(
        True, description="Whether `/metrics` tells Prometheus what the server counts of itself."
    )

    def answering_to(self, host: str) -> Self:
        """These settings, answering also to the name of the address they are served on."""
        name = f"[{host}]" if ":" in host else host
        if host in ANY_ADDRESS or name in self.allowed_hosts:
            return self
        return self.model_copy(update={"allowed_hosts": (*self.allowed_hosts, name)})

    def limits(self) -> dict[str, Limit]:
        """Every limit in force, by name."""
        return {
            name: Limit(
                value=getattr(self, name),
                unit=unit,
                reason=field.description or "",
                refusal=refusal or None,
                env=f"{ENV_PREFIX}{name.upper()}",
            )
            for name, field, unit, refusal in _limit_fields()
        }


def _limit_fields() -> Iterator[tuple[str, FieldInfo, str, str]]:
    for name, field in Settings.model_fields.items():
        shown = field.json_schema_extra
        if isinstance(shown, dict):
            yield name, field, str(shown["unit"]), str(shown["refusal"])
