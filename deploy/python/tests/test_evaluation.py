from __future__ import annotations

import os
import tempfile
import unittest

from hamlet import HamletError
from hamlet.evaluation import flags, replay


class Evaluation(unittest.TestCase):
    def test_replay(self) -> None:
        """A file and the same events have the same figures; options are flags."""
        rows = [("spam", "You won"), ("ham", "lunch"), ("ham", "prize?"), ("spam", "prize")]
        options = {"set": {"table_bits": 8}, "from": 1, "shuffle": None}
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "texts.tsv")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"{label}\t{text}\n" for label, text in rows)
            of_file = replay([path], {**options, "format": "text"})
        of_events = replay([[{"id": str(i), "label": label, "text": text} for i, (label, text) in enumerate(rows)]], options)
        self.assertEqual((of_file["events"], of_file["spam"]), (3, 1))
        self.assertEqual(of_file["log_loss"], of_events["log_loss"])

    def test_refused(self) -> None:
        with self.assertRaisesRegex(HamletError, "status 2.*--no-such"):
            replay(["x"], {"no_such_flag": 1})
        with self.assertRaisesRegex(ValueError, "do not go together"):
            replay(["x", [{"id": "1", "label": "spam", "text": "a"}]], {})

    def test_flags(self) -> None:
        for name, value, want in (
            ("shuffle", 7, ["--shuffle=7"]), ("flip", 0.1, ["--flip=0.1"]), ("table_bits", None, []),
            ("alarms", False, ["--no-alarms"]), ("alarms", True, ["--alarms"]), ("spam", ["a", "b"], ["--spam=a", "--spam=b"]),
            ("set", {"alarms.off": True, "dense": ["a", "b"], "text_ensembles": []},
             ["--set=alarms.off=true", "--set=dense=a,b", "--set=text_ensembles=none"]),
        ):
            self.assertEqual(flags(name, value), want)
