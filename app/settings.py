"""Every setting and limit of the server: its default, unit, reason and environment variable.

Settings are read once, in `create_app`, from the environment variables `HEADLIGHT_<NAME>`:

    HEADLIGHT_MAX_CELLS=16000000 HEADLIGHT_DEVICE=cuda headlight serve

`GET /api/v1/limits`, `headlight limits` and `headlight settings` are made from this module. To add
a limit that an operator may change, add a field of `Settings`; one that is fixed is a constant of
`headlight.schemas`, has its value in `FIXED`, and its unit and reason in `limits.toml`.
"""

import ipaddress
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from platformdirs import user_state_path
from pydantic import BeforeValidator, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from headlight import forms
from headlight.analyses import differences
from headlight.model.checkpoint.files import added_models_dir
from headlight.schemas import generation, traces
from headlight.schemas.edit_kinds import form, site

ENV_PREFIX = "HEADLIGHT_"
OTHER_VARIABLES = frozenset(
    {
        *("api_key", "bind", "chromium", "examples", "renew_architecture", "renew_openapi"),
        *("site", "strict_transport_seconds"),
    }
)
"""Variables with the prefix that the client, compose.yaml and the tests read."""

_PACKAGE = Path(__file__).resolve().parent
HOME = _PACKAGE if (_PACKAGE / "static").is_dir() else _PACKAGE.parent
"""Holds static/, templates/ and model/: an installed package, or the checkout."""

# Compared with a host, never bound to by default.
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104

ROOT_PATH = re.compile(r"(/[A-Za-z0-9._~-]{1,100}){0,10}")

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["float32", "bfloat16"]
LogFormat = Literal["text", "json"]
LogLevel = Literal["error", "warning", "info", "debug"]


def _split_at_commas(several: object) -> object:
    if not isinstance(several, str):
        return several
    return tuple(item.strip() for item in several.split(",") if item.strip())


Several = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_at_commas)]

MIN_KEY_CHARACTERS = 16
_KEY = re.compile(rf"[!-+\--~]{{{MIN_KEY_CHARACTERS},512}}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s/:@\[\]?#]*)")
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?")

MAX_HEADER_BYTES = 32_768
BODY_SECONDS = 20.0
MAX_OUTGOING_BYTES = 536_870_912
MAX_EXPERIMENTS = 2
EXPERIMENT_SECONDS = 60.0
MAX_LONG_TEXTS = 4
MAX_SEARCHES = 4


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limit in force, as `/api/v1/limits` shows it."""

    value: int | float | dict[str, int]
    unit: str
    reason: str
    refusal: str | None
    env: str | None


def _limit(default: float, unit: str, reason: str, *, refusal: str = "", **rules: Any) -> Any:
    """Return a setting that is a limit; `refusal` is status and kind of the problem."""
    shown: dict[str, Any] = {"unit": unit, "refusal": refusal}
    return Field(default, description=reason, json_schema_extra=shown, **rules)


class Settings(BaseSettings):
    """The server's settings; validated on construction, frozen after it."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_ignore_empty=True,
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,  # a mistyped key is still a secret
    )

    max_characters: int = _limit(
        8_000,
        "characters",
        "More than the shipped models can read; counted before anything else touches the text, "
        "because normalising or splitting a hostile text can take far longer than reading it.",
        refusal="422 too-many-characters",
        ge=1,
    )
    max_long_characters: int = _limit(
        200_000,
        "characters",
        "The limit of texts of which only maps or rows of attention are requested, by `resolution` "
        "and `queries`: a book of some 40,000 tokens.",
        refusal="422 too-many-characters",
        ge=1,
    )
    # The name is frozen with the API (max_cells, too-many-cells); the code counts elements.
    max_cells: int = _limit(
        16_000_000,
        "numbers",
        "The numbers that one answer sends: attention grows as layers × heads × tokens². "
        "16 million are 64 MB as float32 and about 180 MB as JSON; one layer of 9 heads and 1,000 "
        "tokens is 9 million.",
        refusal="422 too-many-cells",
        ge=1,
    )
    max_held: int = _limit(
        200_000_000,
        "numbers",
        "The numbers that one pass holds in memory, sent or not, such as the logits that 20 "
        "candidates are chosen from: 200 million are 800 MB.",
        refusal="422 too-many-cells",
        ge=1,
    )
    max_weights: int = _limit(
        64_000_000,
        "numbers",
        "The numbers of the weight matrices in one answer, which is sent matrix by matrix: 64 "
        "million are 256 MB, enough for the embeddings of a model with 50,000 tokens.",
        refusal="422 too-many-weights",
        ge=1,
    )
    max_new_tokens: int = _limit(
        256,
        "tokens",
        "Tokens that one request may generate: as many as the shipped models can read.",
        refusal="422 too-many-new-tokens",
        ge=1,
    )
    max_streams: int = _limit(
        8,
        "streams",
        "Texts that are generated at one time; all of them share the inference thread, so more "
        "would only make each slower.",
        refusal="503 too-many-streams",
        ge=1,
    )
    queue_length: int = _limit(
        64,
        "requests",
        "Requests that may wait for the inference thread; one more is rejected at once, and its "
        "client can retry.",
        refusal="503 queue-full",
        ge=0,
    )
    queue_seconds: float = _limit(
        10.0,
        "seconds",
        "How long a request may wait for the inference thread before it is rejected.",
        refusal="503 queue-timeout",
        gt=0,
    )
    work_seconds: float = _limit(
        120.0,
        "seconds",
        "How long one computation (a trace, or one generated token) may take before it is stopped: "
        "far longer than the largest answer that max_cells allows takes on one slow core.",
        refusal="504 too-slow",
        gt=0,
    )
    long_seconds: float = _limit(
        900.0,
        "seconds",
        "How long reading a text longer than max_characters may take before it is stopped: the "
        "cost of attention grows with the square of the length.",
        refusal="504 too-slow",
        gt=0,
    )
    load_seconds: float = _limit(
        300.0,
        "seconds",
        "How long a model may take to load, its self-check included, before it is given up and "
        "listed as one that cannot be used: several times what seven billion numbers take.",
        refusal="504 model-too-slow",
        gt=0,
    )
    search_seconds: float = _limit(
        10.0,
        "seconds",
        "How long a search in an atlas may take before it is stopped: under a second for an atlas "
        "of a million tokens.",
        refusal="504 too-slow",
        gt=0,
    )
    tile_bytes: int = _limit(
        268_435_456,
        "bytes",
        "Memory for the queries and keys of traces with a resolution, of which tiles are computed. "
        "A trace that needs more has no tiles; 0 keeps none.",
        ge=0,
    )
    cache_bytes: int = _limit(
        33_554_432,
        "bytes",
        "Memory for computed traces, so that the same request again costs no pass: about five "
        "hundred default traces of a sentence. 0 keeps none.",
        ge=0,
    )
    memory_bytes: int = _limit(
        0,
        "bytes",
        "Memory for the weights of all loaded models and for the largest pass of any; the model "
        "used least recently is unloaded, never one in use. Set to 0 for three quarters of the "
        "machine's or the accelerator's memory, shared by the workers.",
        refusal="503 model-too-large",
        ge=0,
    )
    requests_per_minute: int = _limit(
        0,
        "requests",
        "Calls of the API that one client (a key, an address or a /64 network) may make in a "
        "minute in each worker; 0: any number. Off by default because the queue protects the "
        "machine and a classroom may share one address; a public server needs it.",
        refusal="429 too-many-requests",
        ge=0,
    )
    profile_seconds: int = _limit(
        1_800,
        "seconds",
        "How long the server may measure the heads of a model that has no profile, when a reader "
        "asks for it, one at a time, in a process of a lower priority; 0: it measures none.",
        refusal="504 too-slow",
        ge=0,
    )
    link_days: int = _limit(
        30,
        "days",
        "How long the server keeps the state of a page under a short link, in a file that workers "
        "and restarts share; 0: it keeps none, and the page has only its long address.",
        refusal="404 unknown-link",
        ge=0,
        le=3_650,
    )
    max_link_bytes: int = _limit(
        262_144,
        "bytes",
        "The state of one link, as an address writes it: a book of 40,000 words fits.",
        refusal="422 link-too-large",
        ge=1,
    )
    max_links: int = _limit(
        10_000, "links", "Links that are kept; the oldest is dropped for one more.", ge=1
    )
    links_bytes: int = _limit(
        67_108_864,
        "bytes",
        "The states of all links: the oldest are dropped for a new one, which is always kept.",
        ge=1,
    )
    shutdown_seconds: int = _limit(
        5,
        "seconds",
        "How long open responses may go on after the server begins to stop; five seconds later the "
        "process has ended, whatever runs in it.",
        refusal="503 server-stopping",
        ge=0,
    )

    visitors_profile: bool = Field(
        False,
        description="Whether a client without a key may let the server measure the heads of a "
        "model: that takes a core for up to profile_seconds, and writes into the model's folder.",
    )
    host: str = Field(
        "127.0.0.1",
        description="Address to listen on; `0.0.0.0` or `::` for every address of this machine.",
    )
    port: int = Field(8000, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    workers: int = Field(
        1,
        ge=1,
        le=256,
        description="Processes that share the port, each with its own models, queue and cache, "
        "so a trace that one keeps is not found by its id in another.",
    )
    device: Device = Field(
        "auto", description="The device that models run on; auto takes cuda, then mps, then cpu."
    )
    precision: Precision = Field(
        "float32",
        description="The dtype of computation. In bfloat16 numbers agree to two or three digits; "
        "it halves the memory, and is faster if the processor has units for it.",
    )
    threads: int = Field(
        1,
        ge=0,
        description="CPU threads for one forward pass; 0: PyTorch's default. At the size of the "
        "shipped models a second thread gains nothing on an idle machine, and on a busy one makes "
        "a pass ten times slower, as threads wait for each other.",
    )
    default_model: str = Field(
        "stories", description="The model that answers a request that names none."
    )
    zoo_dir: Path = Field(
        HOME / "model" / "zoo", description="The models that ship, one folder each."
    )
    models_dir: Path | None = Field(
        None,
        description="More models, one folder each; a folder's name is the model's id. Without it: "
        "the folder of `headlight add` in the user's data directory.",
    )
    model_folders: Several = Field(
        (),
        description="Folders of single models, separated by commas; a folder's name is the "
        "model's id.",
    )
    chapters_dir: Path | None = Field(
        None,
        description="Folder of more chapters, Markdown files whose names without `.md` are their "
        "ids; `headlight chapter check` tells what is wrong with one.",
    )
    links_dir: Path | None = Field(
        None,
        description="Folder of the file that keeps links, with the texts in them. Without it: "
        "one in the user's state directory.",
    )
    atlas_dir: Path | None = Field(
        None,
        description="Atlases of models, one folder each that is named by the model's id. A model "
        "of Headlight may have one as `atlas` in its own folder, too.",
    )
    log_level: LogLevel = Field(
        "warning",
        description="How much is logged: info adds a line for every request. No level logs a "
        "text, only its length and a keyed hash of it.",
    )
    log_format: LogFormat = Field(
        "text", description="Lines for people, or one JSON object a line for a collector."
    )
    allowed_hosts: Several = Field(
        ("localhost", "127.0.0.1", "[::1]"),
        description="Host names the server answers to, separated by commas; `*.example.org` "
        "takes subdomains, `*` takes any. Rejecting others stops DNS rebinding.",
    )
    api_keys: Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_split_at_commas)] = Field(
        (),
        description="Keys, separated by commas, one of which a client must send to use `/api/` and "
        "`/metrics`, as `Authorization: Bearer KEY` or `X-API-Key: KEY`; without any, all clients "
        "may. The page asks its reader for one. Probes need none.",
    )
    cors_origins: Several = Field(
        (),
        description="Origins of other pages whose scripts may call the API, separated by commas, "
        "as `https://notebook.example.org`; `*` is any. Cookies are never accepted.",
    )
    embed_origins: Several = Field(
        (),
        description="Origins of pages that may show a view in a frame, separated by commas: the "
        "page's address with `?embed` before the `#`. None may by default.",
    )
    root_path: str = Field(
        "",
        pattern=rf"^{ROOT_PATH.pattern}$",
        description="The path that a proxy has the server under, as `/lens`. A trusted proxy may "
        "tell it by X-Forwarded-Prefix; pages need neither, links and QR codes do.",
    )
    trusted_proxies: Several = Field(
        (),
        description="Addresses or networks of the proxies in front, separated by commas, as "
        "`10.0.0.0/8`, whose X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Prefix are "
        "believed. Without it the client is the peer of the connection.",
    )

    @property
    def max_body_bytes(self) -> int:
        """The largest request body: two texts as 12-byte escapes, a long one as UTF-8, a link."""
        texts = max(24 * self.max_characters, 4 * self.max_long_characters)
        return max(texts, 2 * self.max_link_bytes) + 32_768

    @property
    def own_models_dir(self) -> Path:
        """The directory that `headlight add` adds models to."""
        return self.models_dir or added_models_dir()

    @property
    def own_links_dir(self) -> Path:
        """The folder of the file that keeps links."""
        return self.links_dir or user_state_path("headlight", appauthor=False) / "links"

    def answering_to(self, host: str) -> Self:
        """Return settings that also answer to the name of the address listened on."""
        name = f"[{host}]" if ":" in host else host
        if host in ANY_ADDRESS or name in self.allowed_hosts:
            return self
        return self.model_copy(update={"allowed_hosts": (*self.allowed_hosts, name)})

    def limits(self) -> dict[str, Limit]:
        """Return the settings that are limits, by name."""
        by_name = {}
        for name, field in type(self).model_fields.items():
            if isinstance(shown := field.json_schema_extra, dict):
                by_name[name] = Limit(
                    value=getattr(self, name),
                    unit=str(shown["unit"]),
                    reason=field.description or "",
                    refusal=str(shown["refusal"]) or None,
                    env=variable_of(name),
                )
        return by_name

    @field_validator("allowed_hosts")
    @classmethod
    def _check_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not _HOST.fullmatch(host.replace("*", "")):
                rule = "a host name has no scheme, port or path, and IPv6 is in brackets"
                raise ValueError(f"'{host}': {rule}, as in light.example.org or [::1]")
            if host != "*" and "*" in host.removeprefix("*."):
                raise ValueError(f"'{host}': a wildcard is only '*', or '*.' at the beginning")
        if not hosts:
            raise ValueError("no host is allowed; name one, or '*' for any")
        return hosts

    @field_validator("api_keys")
    @classmethod
    def _check_keys(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for place, key in enumerate(keys, 1):
            if not _KEY.fullmatch(key.get_secret_value()):
                rule = f"{MIN_KEY_CHARACTERS} to 512 visible characters of ASCII without commas"
                raise ValueError(f"key {place} is not {rule}; try `openssl rand -hex 32`")
        return keys

    @field_validator("cors_origins", "embed_origins")
    @classmethod
    def _check_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                rule = "an origin is a scheme and a host in small letters, without a path"
                raise ValueError(f"'{origin}': {rule}, as in https://notebook.example.org")
        return origins

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError as error:
                raise ValueError(f"{error}; name an address or a network") from error
        return proxies


def variable_of(setting: str) -> str:
    """Return the environment variable of a setting."""
    return f"{ENV_PREFIX}{setting.upper()}"


def warnings_of(names: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for every variable that has the prefix of a setting and sets none."""
    settings = list(Settings.model_fields)
    for name in sorted(names):
        meant = name.lower().removeprefix(ENV_PREFIX.lower())
        if meant == name.lower() or meant in OTHER_VARIABLES or meant in settings:
            continue
        nearest = get_close_matches(meant, settings, n=1)
        way_out = "`headlight settings` lists the settings"
        if nearest:
            way_out = f"did you mean {variable_of(nearest[0])}?"
        yield f"{name} sets nothing; {way_out}"


FIXED = {
    "max_header_bytes": MAX_HEADER_BYTES,
    "body_seconds": BODY_SECONDS,
    "max_outgoing_bytes": MAX_OUTGOING_BYTES,
    "max_experiments": MAX_EXPERIMENTS,
    "experiment_seconds": EXPERIMENT_SECONDS,
    "max_long_texts": MAX_LONG_TEXTS,
    "max_globs": forms.MAX_GLOBS,
    "max_glob_characters": forms.MAX_GLOB_CHARACTERS,
    "max_model_id_characters": traces.MAX_MODEL_ID_CHARACTERS,
    "max_analyses": traces.MAX_ANALYSES,
    "max_messages": traces.MAX_MESSAGES,
    "max_positional_size": traces.MAX_POSITIONAL_SIZE,
    "max_alternatives": generation.MAX_ALTERNATIVES,
    "max_stops": generation.MAX_STOPS,
    "max_candidates": generation.MAX_CANDIDATES,
    "max_numbers": forms.MAX_NUMBERS,
    "max_edits": form.MAX_EDITS,
    "max_texts": traces.MAX_TEXTS,
    "max_ids": forms.MAX_IDS,
    "max_positions": forms.MAX_POSITIONS,
    "max_resolution": traces.MAX_RESOLUTION,
    "max_queries": traces.MAX_QUERIES,
    "max_tile_bins": traces.MAX_TILE_BINS,
    "max_tile_cells": traces.MAX_TILE_CELLS,
    "max_edited_tokens": differences.MAX_EDITED_TOKENS,
    "max_values": site.MAX_VALUES,
}
"""The values of the limits that no setting moves; what they mean is in limits.toml."""


def fixed_limit(name: str, value: float | dict[str, int]) -> Limit:
    """Return a limit that no setting moves, with its meaning."""
    return Limit(value=value, env=None, **{"refusal": "422 invalid-request", **_meanings()[name]})


@cache
def _meanings() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("limits.toml").read_text("utf-8"))


def limits_of(
    settings: Settings, max_tokens: Mapping[str, int], memory_bytes: int | None = None
) -> dict[str, Limit]:
    """Return every limit in force: of the settings, fixed ones, and of each model.

    Args:
        settings: of the server.
        max_tokens: the longest text of each model.
        memory_bytes: what the models may take, if the settings leave it to the machine.
    """
    limits = settings.limits()
    if memory_bytes is not None:
        limits["memory_bytes"] = replace(limits["memory_bytes"], value=memory_bytes)
    fixed: dict[str, float | dict[str, int]] = {
        "max_body_bytes": settings.max_body_bytes,
        **FIXED,
        "max_tokens": dict(max_tokens),
    }
    return limits | {name: fixed_limit(name, value) for name, value in fixed.items()}
