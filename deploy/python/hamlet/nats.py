"""A client of a running hamlet over NATS."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

try:
    import nats
    import nats.errors
except ImportError as e:
    raise ImportError("hamlet.AsyncScorer needs nats-py: pip install 'hamlet[nats]'") from e

from .events import batches, encode
from .events import message as _event
from .scorer import ScorerError

Message = Union[str, bytes, Mapping[str, Any]]


class AsyncScorer:
    """Asks the scoring service on NATS.

    A message is a text (str), a mail (bytes) or an event (a dict with ``"mail"``,
    ``"text"`` or ``"vector"``). With its base64 it is smaller than NATS' largest message, 1 MiB:
    :class:`Scorer` takes larger ones.

    >>> async with AsyncScorer("nats://127.0.0.1:4222") as scorer:  # doctest: +SKIP
    ...     verdict = await scorer.score("You won a prize")

    Parameters
    ----------
    url, user, password
        Of the server. The defaults are ``NATS_URL``, ``NATS_USER`` and
        ``NATS_PASSWORD``, which ``eval "$(hamlet env)"`` sets.
    model
        Whose answer is wanted.
    tenant
        Whose mail it is, for events that do not say.
    timeout
        How many seconds an answer may take.
    """

    def __init__(
        self, url: Optional[str] = None, *, user: Optional[str] = None, password: Optional[str] = None,
        model: str = "default", tenant: Optional[str] = None, timeout: float = 10.0,
    ) -> None:
        self.url = url or os.environ.get("NATS_URL") or "nats://127.0.0.1:4222"
        self.tenant = tenant
        self.timeout = timeout
        self._login = {"user": user or os.environ.get("NATS_USER"), "password": password or os.environ.get("NATS_PASSWORD")}
        self._suffix = "" if model == "default" else f".{model}"
        self._connection: Any = None  # None unless connected

    async def connect(self) -> AsyncScorer:
        """Connect. ``async with`` does it too."""
        login = {name: value for name, value in self._login.items() if value}
        try:
            self._connection = await nats.connect(self.url, connect_timeout=self.timeout, max_reconnect_attempts=3, **login)
        except (OSError, nats.errors.Error) as e:
            raise ScorerError(f"connect to NATS: {e}") from e
        return self

    async def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def __aenter__(self) -> AsyncScorer:
        return await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def score(self, message: Message) -> dict[str, Any]:
        """Return the verdict: ``p``, ``interval``, ``verdict``, ``margin``, ``model`` and others."""
        verdict: dict[str, Any] = await self._ask("score", encode(_event(message, self.tenant)))
        return verdict

    async def explain(self, message: Message) -> dict[str, Any]:
        """Return the verdict with ``reasons`` and ``words``."""
        verdict: dict[str, Any] = await self._ask("explain", encode(_event(message, self.tenant)))
        return verdict

    async def score_many(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Return the verdicts of the messages, in order. Requests are of bounded size."""
        verdicts: list[dict[str, Any]] = []
        for batch in batches((_event(m, self.tenant) for m in messages), 200, 512 << 10):
            verdicts += await self._ask("score", f"[{batch}]")
        return verdicts

    async def info(self) -> dict[str, Any]:
        """Return which model is served, its age and its open incidents."""
        served: dict[str, Any] = await self._ask("info", "")
        return served

    async def _ask(self, operation: str, text: str) -> Any:
        if self._connection is None:
            raise ScorerError("not connected: use `async with`, or await connect()")
        headers = {"Content-Type": "application/json"} if text else None
        try:
            reply = await self._connection.request(
                f"hamlet.{operation}{self._suffix}", text.encode("utf-8"), timeout=self.timeout, headers=headers,
            )
        except nats.errors.NoRespondersError:
            raise ScorerError("no scorer answers", 503, 1.0) from None
        except nats.errors.Error as e:  # timeouts too
            raise ScorerError(f"ask for {operation}: {e or type(e).__name__}") from e
        refused = (reply.headers or {}).get("Nats-Service-Error")
        if refused is not None:
            code = int(reply.headers.get("Nats-Service-Error-Code", "500"))
            raise ScorerError(refused, code, 1.0 if code in (429, 503) else None)
        return json.loads(reply.data)
