"""hamlet in Python: a streaming Bayesian classifier that says how sure it is.

The package has no mathematics of its own. It runs the program ``hamlet``, which the
environment variable ``HAMLET_BIN`` names, or which is found in the ``PATH``.

- :class:`Classifier` follows scikit-learn's conventions (needs scikit-learn).
- :class:`StreamClassifier` follows River's (River itself is not needed).
- :class:`Model` is what both hold: a model in a process, fed with events.
- :func:`evaluate` replays labelled data and returns a frame (needs pandas).
- :class:`Scorer` asks a running hamlet over HTTP, :class:`AsyncScorer` over NATS
  (needs nats-py).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .program import HamletError, program, run

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .classifier import Classifier
    from .evaluation import evaluate
    from .model import Model
    from .nats import AsyncScorer
    from .online import StreamClassifier
    from .process import RefusedError
    from .scorer import Scorer, ScorerError

__all__ = [
    "AsyncScorer", "Classifier", "HamletError", "Model", "RefusedError", "Scorer", "ScorerError",
    "StreamClassifier", "evaluate", "program", "run",
]

# Modules are loaded when a name is first used, so that nobody waits for a package that
# is not needed.
_HOMES = {
    "AsyncScorer": "nats", "Classifier": "classifier", "Model": "model", "RefusedError": "process", "Scorer": "scorer",
    "ScorerError": "scorer", "StreamClassifier": "online", "evaluate": "evaluation",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{home}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
