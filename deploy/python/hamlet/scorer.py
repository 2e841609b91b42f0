"""A client of a running hamlet over HTTP."""

from __future__ import annotations

import email.utils
import http.client
import json
import math
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

from .events import batches, encode
from .events import message as _event
from .program import HamletError

Message = Union[str, bytes, Mapping[str, Any]]


class ScorerError(HamletError):
    """A request was refused, or nobody answered.

    ``status`` is that of HTTP; 0 means that there was no whole answer. ``retry_after`` is how
    many seconds to wait, None if the same request will be refused again.
    """

    def __init__(self, text: str, status: int = 0, retry_after: Optional[float] = None) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after = retry_after


class Scorer:
    """Asks the HTTP door of ``hamlet up --http`` or ``hamlet gateway``.

    A message is a text (str), a mail (bytes) or an event (a dict with ``"mail"``,
    ``"text"`` or ``"vector"``). Threads may share a scorer.

    Parameters
    ----------
    url
        Where the door is, such as ``http://127.0.0.1:9104``.
    token
        The bearer token. Without one the door answers programs of its own machine.
    tenant
        Whose mail it is, for events that do not say.
    timeout
        How many seconds an answer may take.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:9104", *, token: Optional[str] = None,
        tenant: Optional[str] = None, timeout: float = 30.0,
    ) -> None:
        self.url = url.rstrip("/")
        self.tenant = tenant
        self.timeout = timeout
        self._token = token

    def score(self, message: Message) -> dict[str, Any]:
        """Return the verdict: ``p``, ``interval``, ``verdict``, ``margin``, ``model`` and others."""
        verdict: dict[str, Any] = self._post("/v1/score", encode(_event(message, self.tenant)))
        return verdict

    def explain(self, message: Message) -> dict[str, Any]:
        """Return the verdict with ``reasons`` and ``words``."""
        verdict: dict[str, Any] = self._post("/v1/explain", encode(_event(message, self.tenant)))
        return verdict

    def score_many(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Return the verdicts of the messages, in order. Requests are of bounded size."""
        verdicts: list[dict[str, Any]] = []
        for batch in batches((_event(m, self.tenant) for m in messages), 500, 4 << 20):
            verdicts += self._post("/v1/score", f"[{batch}]")
        return verdicts

    def info(self) -> dict[str, Any]:
        """Return which model is served, its age and its open incidents."""
        served: dict[str, Any] = self._ask(urllib.request.Request(self.url + "/v1/info"))
        return served

    def learn(self, events: Union[Mapping[str, Any], Iterable[Mapping[str, Any]]]) -> int:
        """Send labelled events. It returns how many, once Kafka has them safe.

        An event has ``"id"`` and ``"label"`` beside its body. Sent again with the same id, it
        is learnt once. A request has a bounded number of events, and is refused as a whole.
        """
        if isinstance(events, Mapping):
            events = [events]
        accepted = 0
        for batch in batches((_event(e, self.tenant) for e in events), 1000, 8 << 20, "\n"):
            accepted += self._post("/v1/events", batch, "application/x-ndjson")["accepted"]
        return accepted

    def _post(self, path: str, text: str, kind: str = "application/json") -> Any:
        request = urllib.request.Request(self.url + path, data=text.encode("utf-8"))
        request.add_header("Content-Type", kind)
        return self._ask(request)

    def _ask(self, request: urllib.request.Request) -> Any:
        if self._token is not None:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with _opener.open(request, timeout=self.timeout) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as e:
            with e:
                raise ScorerError(_reason(e) or str(e), e.code, _seconds(e.headers.get("Retry-After"))) from None
        except (OSError, http.client.HTTPException) as e:  # URLError, timeouts and answers cut short too
            raise ScorerError(f"ask {self.url}: {e}") from e
        try:
            return json.loads(text or b"null")
        except ValueError as e:
            raise ScorerError(f"ask {self.url}: the answer is not JSON: {e}", status) from e


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token is for the door alone."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        """Refuse the redirect."""
        raise urllib.error.HTTPError(req.full_url, code, f"a redirect to {newurl} is not followed", headers, fp)


_opener = urllib.request.build_opener(_Stay)


def _reason(answer: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(answer.read())["error"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return ""


def _seconds(wait: Optional[str]) -> Optional[float]:
    """Return the seconds that a Retry-After of seconds or of a date asks for."""
    if wait is None:
        return None
    try:
        seconds = float(wait)
    except ValueError:
        date = email.utils.parsedate_tz(wait)
        if date is None:
            return None
        try:
            seconds = email.utils.mktime_tz(date) - time.time()
        except (ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
