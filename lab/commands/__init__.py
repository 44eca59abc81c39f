"""The commands that train, evaluate and quantize models and clean text.

`headlight` finds them by the entry point of this package, and runs without them.
"""

from headlight.commands.parsing import Commands
from headlight.lab.commands import comparisons, data, evaluate, quantize, train

app = Commands()
for _module in (train, comparisons, evaluate, quantize, data):
    app.add_typer(_module.app)
