"""A model in a process of its own."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Optional

from .events import batches
from .process import Process, RefusedError
from .program import HamletError

MAX_PROCESSES = 16
"""How many models have a process at once. The one that was unused longest is parked:
its bytes are kept, its process ends, and its next use starts another."""

_BATCH_EVENTS = 1000
_BATCH_CHARACTERS = 8 << 20

# Models with a process, by id, longest unused first. An entry may outlive its model.
_running: OrderedDict[int, weakref.ref[Model]] = OrderedDict()
_running_lock = threading.Lock()


class Model:
    """A streaming Bayesian classifier of mail, texts and vectors.

    It is the model of hamlet's services: the same events make the same bytes.
    ``config`` has keys that ``hamlet eval --keys`` lists, such as
    ``{"dense": ["x0", "x1"], "alarms": {"off": True}}``.

    An event is a dict with one body: ``"mail"`` (bytes), ``"text"`` (str) or
    ``"vector"`` (a dict of name: number). What is to be learnt has a ``"label"``,
    ``"spam"`` or ``"ham"``, and may have ``"id"``, ``"source"``, ``"tenant"``,
    ``"action"`` and ``"of"``. An event without an id gets one.

    The model lives in a process of ``hamlet pipe``, which ends with the object. Copies
    and pickles hold the model's bytes. Threads may share a model; they wait for one
    another. A process that was forked cannot use its parent's models.

    >>> model = Model()
    >>> effects = model.learn([{"label": "spam", "text": "You won a prize"}])
    >>> answers = model.score([{"text": "a prize"}])
    """

    def __init__(self, config: Optional[Mapping[str, Any]] = None, *, binary: Optional[str] = None) -> None:
        self._rest(binary, b"")
        with self._lock:
            self._start({"op": "new", "config": dict(config or {})})

    @classmethod
    def load(cls, data: bytes, *, binary: Optional[str] = None) -> Model:
        """Return the model with the bytes of :meth:`save`, of a learner or of ``hamlet eval --save``."""
        model = cls.__new__(cls)
        model._rest(binary, bytes(data))
        with model._lock:
            model._resume()
        return model

    def learn(self, events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Learn the events in order and return what each did.

        An effect has ``id``; ``p``, ``log_odds`` and ``interval``, the answer before
        the event was learnt; ``trust``, the probability that its label is true; and
        ``alerts``, ``outcome``, ``duplicate`` where there are any. Events are sent by the
        thousand. A wrong event is a :class:`RefusedError`: nothing of its thousand is
        learnt. A withdrawal that finds nothing has an ``error`` in its effect.
        """
        effects: list[dict[str, Any]] = []
        for batch in batches(events, _BATCH_EVENTS, _BATCH_CHARACTERS):
            effects += self._ask(f'{{"op":"learn","events":[{batch}]}}')["effects"]
        return effects

    def score(self, events: Iterable[Mapping[str, Any]], level: float = 0.9) -> list[dict[str, Any]]:
        """Return ``p``, the probability of spam, ``log_odds`` and ``interval`` of each event.

        The interval of the probability has the given level.
        """
        return self._answers(f'"op":"score","level":{float(level)!r}', events)

    def explain(self, events: Iterable[Mapping[str, Any]], level: float = 0.9, words: int = 5) -> list[dict[str, Any]]:
        """Return what :meth:`score` returns, with ``reasons`` and ``words``.

        A reason is an input's ``contribution`` to the mean of the log-odds, in nats, with
        its ``sd``. All reasons sum to that mean. ``words`` are the pieces of the message
        that add most to it, at most 20.
        """
        return self._answers(f'"op":"explain","level":{float(level)!r},"words":{int(words)}', events)

    def info(self) -> dict[str, Any]:
        """Return ``events``, ``spam``, ``flip_rate``, ``numerics``, ``config`` and open ``incidents``."""
        return self._ask('{"op":"info"}')

    def save(self) -> bytes:
        """Return the model's bytes. :meth:`load` continues bit for bit."""
        with self._lock:
            if self._process is None and self._bytes:
                return self._bytes
            return _save(self._ask)

    def close(self) -> None:
        """End the process. The model cannot be used afterwards."""
        with self._lock:
            self._drop()
            self._bytes = b""

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"bytes": self.save(), "binary": self._binary}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._rest(state["binary"], state["bytes"])

    # Invariant: at most one of _process and _bytes is there; none after close or a loss.
    # Only methods that hold _lock write them.

    def _rest(self, binary: Optional[str], data: bytes) -> None:
        self._binary = binary
        self._lock = threading.RLock()
        self._process: Optional[Process] = None
        self._end: Optional[weakref.finalize[..., Model]] = None
        self._pid = 0  # of the Python that started _process
        self._bytes = data

    def _answers(self, fields: str, events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = []
        for batch in batches(events, _BATCH_EVENTS, _BATCH_CHARACTERS):
            answers += self._ask(f'{{{fields},"events":[{batch}]}}')["answers"]
        return answers

    def _ask(self, request: str) -> dict[str, Any]:
        with self._lock:
            if self._process is None:
                if not self._bytes:
                    raise HamletError("this model is closed, or its process was lost in an earlier request")
                self._resume()
            process = self._process
            assert process is not None
            if self._pid != os.getpid():
                raise HamletError("this model belongs to the process that forked this one: pickle it there")
            try:
                reply = process.ask(request)
            except RefusedError:
                raise
            except BaseException:
                self._drop()
                raise
            with _running_lock:
                _running.move_to_end(id(self))
        return reply

    def _resume(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "model")
            with open(path, "wb") as file:
                file.write(self._bytes)
            self._start({"op": "load", "file": path})

    def _start(self, first: dict[str, Any]) -> None:
        process = Process(self._binary)
        try:
            process.ask(json.dumps(first))
        except BaseException:
            process.stop()
            raise
        self._process, self._pid, self._bytes = process, os.getpid(), b""
        self._end = weakref.finalize(self, _stop, process, self._pid)
        with _running_lock:
            for key, ref in list(_running.items()):
                if ref() is None:
                    del _running[key]
            _running[id(self)] = weakref.ref(self)
            _running.move_to_end(id(self))
            longest_unused = list(_running.values())[: max(0, len(_running) - MAX_PROCESSES)]
        for ref in longest_unused:
            model = ref()
            if model is not None and model is not self:
                model._park()

    def _park(self) -> None:
        """Keep the bytes and end the process, unless another thread uses it.

        A process that was lost is no error of the model that needs its place: the next use
        of this model says so. A process that cannot save, on a full disk, stays.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._process is not None and self._pid == os.getpid():
                data = _save(self._process.ask)
                self._drop()
                self._bytes = data
        except (RefusedError, OSError):
            pass
        except HamletError:
            self._drop()
        except BaseException:
            self._drop()
            raise
        finally:
            self._lock.release()

    def _drop(self) -> None:
        if self._end is not None:
            with _running_lock:
                _running.pop(id(self), None)
            self._end()
        self._process, self._end = None, None


def _stop(process: Process, pid: int) -> None:
    # The collector may call this at any line, so it takes no lock. A fork has the pipes
    # too, but the process is not its own.
    if pid == os.getpid():
        process.stop()


def _save(ask: Callable[[str], dict[str, Any]]) -> bytes:
    """Return the bytes of the model that ask asks. They travel in a file, which is faster."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "model")
        ask(json.dumps({"op": "save", "file": path}))
        with open(path, "rb") as file:
            return file.read()
