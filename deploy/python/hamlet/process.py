"""A process of ``hamlet pipe``, which holds one model."""

from __future__ import annotations

import json
import subprocess
import tempfile
from typing import Any, Optional

from .program import HamletError, program


class RefusedError(HamletError, ValueError):
    """The model refused a request. It has not changed."""


class Process:
    """A process of ``hamlet pipe``. One thread at a time may ask it."""

    def __init__(self, path: Optional[str] = None) -> None:
        command = [program(path), "pipe"]
        # What hamlet says when it ends goes to a file, because nobody reads a pipe then.
        self._errors = tempfile.TemporaryFile()
        # A session of its own: an interrupt from the keyboard is for Python alone.
        self._popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, start_new_session=True,
        )

    def ask(self, request: str) -> dict[str, Any]:
        """Send a request, a line of JSON, and return the reply.

        After an error that is no :class:`RefusedError` the process is gone. So it is
        after an interrupt, since a late reply would be taken for the next one.
        """
        stdin, stdout = self._popen.stdin, self._popen.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(request.encode("utf-8") + b"\n")
            stdin.flush()
            line = stdout.readline()
        except (OSError, ValueError) as e:  # ValueError: the pipes are closed
            raise self._lost() from e
        except BaseException:
            self.stop()
            raise
        if not line.endswith(b"\n"):
            raise self._lost()
        reply: dict[str, Any] = json.loads(line)
        if set(reply) == {"error"}:
            raise RefusedError(reply["error"])
        return reply

    def stop(self) -> None:
        """End the process. It may be called again."""
        self._popen.kill()
        for stream in (self._popen.stdin, self._popen.stdout):
            assert stream is not None
            try:
                stream.close()
            except OSError:  # what stdin still held cannot be written
                pass
        self._popen.wait()
        self._errors.close()

    def _lost(self) -> HamletError:
        self._popen.kill()
        status = self._popen.wait()
        said = ""
        if not self._errors.closed:
            self._errors.seek(0)
            said = self._errors.read().decode("utf-8", "replace").strip()
        self.stop()
        return HamletError(f"hamlet pipe ended with status {status}: {said[-2000:]}")
