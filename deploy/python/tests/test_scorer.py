from __future__ import annotations

import time
import unittest
from collections.abc import Callable

from hamlet import Scorer, ScorerError

from .server import WAIT, up

TEXTS = "".join(f"{label}\t{word} number {i % 5}\n" for i in range(40) for label, word in (("spam", "prize"), ("ham", "lunch")))


class HTTP(unittest.TestCase):
    def test_door(self) -> None:
        """Every request of the client is one that the door of a running hamlet takes."""
        with up(TEXTS) as server:
            scorer = Scorer(server.http, token=server.token, timeout=WAIT)
            until(lambda: scorer.info()["events"] == 80)
            one = scorer.score("a prize")
            self.assertGreater(one["p"], 0.5)
            self.assertEqual(scorer.score({"text": "a prize"})["p"], one["p"])
            self.assertEqual([w["text"] for w in scorer.explain("a prize")["words"]], ["prize"])
            many = scorer.score_many(["a prize", b"Subject: lunch\r\n\r\nnumber 1\r\n"] * 600)
            self.assertEqual(len(many), 1200)
            self.assertEqual((many[0]["p"], many[1]["p"]), (one["p"], many[1199]["p"]))
            self.assertEqual(scorer.score_many([]), [])

            self.assertEqual(scorer.learn({"id": "new", "label": "ham", "text": "a prize"}), 1)
            self.assertEqual(scorer.learn({"id": f"new{i}", "label": "ham", "text": "a prize"} for i in range(2)), 2)
            until(lambda: scorer.info()["events"] == 83)
            self.assertLess(scorer.score("a prize")["p"], one["p"])
            with self.assertRaises(ScorerError) as refused:
                scorer.learn({"id": "other", "text": "a prize"})
            self.assertEqual((refused.exception.status, refused.exception.retry_after), (400, None))
            self.assertIn("label: missing", str(refused.exception))
            for wrong in (Scorer(server.http), Scorer(server.http, token="guess")):
                with self.assertRaises(ScorerError) as refused:
                    wrong.score("a prize")
                self.assertEqual(refused.exception.status, 401)
            other = Scorer(server.http, token=server.token, tenant="other", timeout=WAIT)
            self.assertEqual(other.score("a prize")["p"], scorer.score("a prize")["p"])

    def test_nobody(self) -> None:
        with self.assertRaises(ScorerError) as nobody:
            Scorer("http://127.0.0.1:9").info()
        self.assertEqual(nobody.exception.status, 0)


def until(holds: Callable[[], bool]) -> None:
    """Wait until holds() is true. Until then it may raise what gets better by waiting."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            if holds():
                return
        except ScorerError as e:
            if e.retry_after is None:
                raise
        if time.monotonic() > deadline:
            raise AssertionError("it did not become true in time")
        time.sleep(0.01)
