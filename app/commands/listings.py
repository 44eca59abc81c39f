"""`headlight models`, `limits` and `settings`: lists for people or as JSON."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from headlight.commands.options import AsJson, ModelsDir
from headlight.commands.output import print_json, show
from headlight.commands.parsing import Commands, settings_of, settings_with_models

if TYPE_CHECKING:
    from headlight.settings import Settings

app = Commands()


@app.command()
def models(models_dir: ModelsDir = None) -> None:
    """List the available models."""
    from headlight.model.description import NO_LIMIT
    from headlight.models.model_registry import Registry, registry_of

    settings = settings_with_models(models_dir=models_dir)
    # The reasons come below the table; without a handler the log would print them as well.
    logging.getLogger(Registry.__module__).addHandler(logging.NullHandler())
    registry = registry_of(settings)
    table = Table(
        Column("id", no_wrap=True), Column("kind", no_wrap=True), box=None, pad_edge=False
    )
    for name in ("layers", "heads", "experts", "weights", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    for description in registry.listed:
        config, moe = description.config, description.config.moe
        millions = description.n_parameters / 1e6
        table.add_row(
            description.id,
            config.kind,
            str(config.n_layers),
            str(config.n_heads or "–"),
            f"{moe.top_k} of {moe.n_experts}" if moe else "dense",
            f"{millions:.1f} M" if millions >= 0.1 else f"{millions:.2g} M",
            f"{config.max_tokens:,}" if config.max_tokens < NO_LIMIT else "no bound",
        )
    show(table)
    for model, reason in registry.unavailable.items():
        show(Text(f"{model} cannot be used: {reason}", style="yellow"))


@app.command()
def limits(models_dir: ModelsDir = None, as_json: AsJson = False) -> None:
    """List the limits of a server started here, with the reason and the variable of each."""
    from headlight.models.model_registry import registry_of
    from headlight.settings import limits_of

    settings = settings_with_models(models_dir=models_dir)
    registry = registry_of(settings)
    known = limits_of(settings, registry.max_tokens, registry.memory.limit)
    if as_json:
        print_json({name: asdict(limit) for name, limit in known.items()})
        return
    for name, limit in known.items():
        facts = " · ".join((limit.refusal or "not an error", limit.env or "fixed"))
        if isinstance(limit.value, dict):
            by_model = [f"{model}: {value:,} {limit.unit}" for model, value in limit.value.items()]
            _write_entry(f"{name}  of each model", *by_model, facts, limit.reason)
        else:
            _write_entry(f"{name}  {limit.value:,} {limit.unit}", facts, limit.reason)


@app.command("settings")
def settings_command(as_json: AsJson = False) -> None:
    """List the other settings of a server started here: variable, value and description."""
    from headlight.settings import variable_of

    settings = settings_of()
    limits = settings.limits()
    fields = {
        name: field.description or ""
        for name, field in type(settings).model_fields.items()
        if name not in limits
    }
    if as_json:
        values = settings.model_dump(mode="json")
        print_json(
            {
                name: {"value": values[name], "env": variable_of(name), "description": description}
                for name, description in fields.items()
            }
        )
        return
    for name, description in fields.items():
        _write_entry(f"{variable_of(name)}  {_written(settings, name)}", description)


def _write_entry(head: str, *lines: str) -> None:
    show(Text(head, style="bold"))
    for line in lines:
        show(Padding(Text(line), (0, 0, 0, 2)))
    show("")


def _written(settings: Settings, name: str) -> str:
    """Return a setting's value as its environment variable has it; API keys are masked."""
    value = getattr(settings, name)
    if name == "api_keys":
        return f"({len(value)}, not shown)" if value else "(none)"
    if isinstance(value, tuple):
        return ",".join(value) or "(none)"
    return "(none)" if value is None else str(value)
