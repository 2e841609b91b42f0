"""Events, as hamlet reads them in JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional, Union

Features = Union[str, bytes, Mapping[Any, Any]]
"""A text, a mail, or a dict of features."""


def body(x: Features) -> dict[str, Any]:
    """Return x as the body of an event.

    A string v of a feature called name becomes the feature ``name=v`` with the value 1.
    None and NaN are left out.
    """
    if isinstance(x, str):
        return {"text": x or " "}  # hamlet takes no text without a character
    if isinstance(x, (bytes, bytearray)):
        return {"mail": bytes(x)}
    if isinstance(x, Mapping):
        return {"vector": dict(_numbers(x))}
    raise TypeError(f"a text, a mail in bytes or a dict of features is wanted, not {type(x).__name__}")


def _numbers(x: Mapping[Any, Any]) -> Iterator[tuple[str, float]]:
    for name, value in x.items():
        if value is None:
            continue
        if isinstance(value, str):
            yield f"{name}={value}", 1.0
            continue
        try:
            number = float(value)
        except (TypeError, ValueError) as e:
            raise TypeError(f"feature {name!r}: a number or a string is wanted, not {type(value).__name__}") from e
        if not math.isnan(number):
            yield str(name), number


def message(x: Union[str, bytes, Mapping[str, Any]], tenant: Optional[str] = None) -> Mapping[str, Any]:
    """Return a text, a mail or an event as an event, of the tenant if it does not say whose it is."""
    event = x if isinstance(x, Mapping) else body(x)
    return event if tenant is None else {"tenant": tenant, **event}


def encode(event: Mapping[str, Any]) -> str:
    """Return an event in JSON. A mail of bytes becomes base64."""
    mail = event.get("mail")
    if isinstance(mail, (bytes, bytearray)):
        event = {**event, "mail": base64.b64encode(mail).decode("ascii")}
    try:
        return json.dumps(event, allow_nan=False)
    except TypeError as e:
        raise TypeError(f"an event of plain types is wanted: {e}") from e


def batches(events: Iterable[Mapping[str, Any]], most: int, characters: int, between: str = ",") -> Iterator[str]:
    """Yield the events in JSON, joined, in batches of bounded number and size.

    An event that is larger is a batch of its own.
    """
    batch: list[str] = []
    size = 0
    for event in events:
        text = encode(event)
        if batch and (len(batch) == most or size + len(text) > characters):
            yield between.join(batch)
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield between.join(batch)
