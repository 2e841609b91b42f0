"""The program hamlet: where it is, and how to run it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from typing import Optional


class HamletError(Exception):
    """The program hamlet is missing, failed, or refused a request."""


def program(path: Optional[str] = None) -> str:
    """Return the path of the program hamlet.

    It is ``path``, or what ``HAMLET_BIN`` names, or the ``hamlet`` of the ``PATH``.
    """
    wanted = path or os.environ.get("HAMLET_BIN") or "hamlet"
    found = shutil.which(wanted)
    if found is None:
        raise HamletError(
            f"there is no program {wanted!r}: build it with `go install ./cmd/hamlet`, "
            "and name it in HAMLET_BIN or put it in the PATH"
        )
    return found


def run(arguments: Iterable[str], *, stdin: Optional[bytes] = None, path: Optional[str] = None) -> str:
    """Run hamlet with these arguments and return its standard output.

    An exit status other than 0 is a :class:`HamletError` with what hamlet said.
    """
    command = [program(path), *arguments]
    # Without input of ours the program gets none: it never waits for a keyboard.
    done = subprocess.run(command, input=stdin if stdin is not None else b"", capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise HamletError(f"hamlet {command[1] if len(command) > 1 else ''} ended with status {done.returncode}: {said}")
    return done.stdout.decode("utf-8")
