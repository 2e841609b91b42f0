"""Progressive validation: hamlet eval, as a frame."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

from .events import encode
from .program import run

if TYPE_CHECKING:
    import pandas as pd

Source = Union[str, "os.PathLike[str]", Iterable[Mapping[str, Any]]]


def evaluate(*sources: Source, binary: Optional[str] = None, **options: Any) -> pd.DataFrame:
    """Replay labelled data: each event is scored first and learnt afterwards.

    Returns a frame with a row for each event, in order: ``id``, ``label``, ``p``,
    ``log_odds``, ``lo`` and ``hi``, as predicted before the event was learnt. Its
    ``attrs["metrics"]`` has what ``hamlet eval --json`` prints, such as ``log_loss``,
    ``roca`` and ``model_sha256``, and ``attrs["alerts"]`` the steps of incidents.

    A source is a path that ``hamlet eval`` takes, or an iterable of labelled events.
    Options are the flags of ``hamlet eval`` with underscores: a list repeats a flag, True
    gives it, False negates it, None leaves it out. ``set`` may be a dict.

    >>> frame = evaluate([{"id": "1", "label": "spam", "text": "You won"}], table_bits=8)
    >>> frame.attrs["metrics"]["events"]
    1
    """
    try:
        import pandas as pd
    except ImportError as e:
        raise ImportError("hamlet.evaluate needs pandas: pip install 'hamlet[pandas]'") from e

    with tempfile.TemporaryDirectory() as directory:
        scores, alerts = os.path.join(directory, "scores.csv"), os.path.join(directory, "alerts.jsonl")
        metrics = replay(sources, {**options, "scores": scores, "alerts": alerts}, binary)
        with open(scores, encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        # Ids are names, also where they look like numbers or like gaps.
        columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in ("id", "label")}
        for name in ("p", "log_odds", "lo", "hi"):
            columns[name] = [float(row[name]) for row in rows]
        frame = pd.DataFrame(columns)
        with open(alerts, encoding="utf-8") as lines:
            frame.attrs["alerts"] = [json.loads(line) for line in lines]
    frame.attrs["metrics"] = metrics
    return frame


def replay(sources: Iterable[Source], options: Mapping[str, Any], binary: Optional[str] = None) -> dict[str, Any]:
    """Run ``hamlet eval --json`` with these options and return its object. It needs no package."""
    arguments = ["eval", "--json"]
    for name, value in options.items():
        arguments += flags(name, value)
    events: list[str] = []
    for source in sources:
        if isinstance(source, (str, os.PathLike)):
            arguments.append(os.fspath(source))
        else:
            events += [encode(event) + "\n" for event in source]
    if events:
        if any(not argument.startswith("-") for argument in arguments[1:]):
            raise ValueError("sources: paths and events do not go together")
        arguments += ["--format=jsonl", "-"]
    metrics: dict[str, Any] = json.loads(run(arguments, stdin="".join(events).encode("utf-8"), path=binary))
    return metrics


def flags(name: str, value: Any) -> list[str]:
    """Return the flags of one option."""
    flag = "--" + name.replace("_", "-")
    if value is None:
        return []
    if value is True:
        return [flag]
    if value is False:
        return ["--no-" + flag[2:]]
    if isinstance(value, Mapping):
        return [f"{flag}={key}={_text(setting)}" for key, setting in value.items()]
    if isinstance(value, (list, tuple)):
        return [f"{flag}={_text(part)}" for part in value]
    return [f"{flag}={_text(value)}"]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or "none"
    return str(value)
