"""A hamlet up for the tests that ask one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple

from hamlet import program

WAIT = 60.0  # seconds, for a busy machine


class Server(NamedTuple):
    http: str  # http://host:port
    nats: str  # host:port
    token: str
    environment: dict[str, str]  # with which hamlet env finds its passwords


@contextlib.contextmanager
def up(texts: str) -> Iterator[Server]:
    """Run a hamlet up that has learnt texts, lines of label, tab and text."""
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "XDG_RUNTIME_DIR": directory}
        source, said = os.path.join(directory, "texts"), os.path.join(directory, "said")
        with open(source, "w", encoding="utf-8") as file:
            file.write(texts)
        with open(said, "wb") as errors:
            process = subprocess.Popen(
                [program(), "up", source, "--format=text", "--http=127.0.0.1:0", "--token=secret", "--listen-nats=127.0.0.1:0",
                 "--table-bits=10", "--experts=lean", "--save-every=100ms", "--log-level=error"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=environment,
            )
        try:
            http, nats = _addresses(process, said)
            _await_ready(http)
            yield Server(http, nats, "secret", environment)
        finally:
            process.terminate()
            process.wait(WAIT)


def _addresses(process: subprocess.Popen[bytes], said: str) -> tuple[str, str]:
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline and process.poll() is None:
        with open(said, encoding="utf-8") as lines:
            words = [line.split() for line in lines if line.startswith("  ")]
        found = {word[0]: word[1] for word in words if len(word) == 2}
        if "http" in found and "nats" in found:
            return found["http"], found["nats"].split("//", 1)[1]
        time.sleep(0.01)
    with open(said, encoding="utf-8") as lines:
        raise AssertionError(f"hamlet up did not start: {lines.read()}")


def _await_ready(http: str) -> None:
    deadline = time.monotonic() + WAIT
    while True:
        try:
            with urllib.request.urlopen(http + "/readyz", timeout=WAIT):
                return
        except urllib.error.HTTPError as e:
            e.close()
            if time.monotonic() > deadline:
                raise
        time.sleep(0.01)
