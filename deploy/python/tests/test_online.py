from __future__ import annotations

import copy
import math
import unittest

from hamlet import StreamClassifier

SMALL = {"table_bits": 8, "text_experts": ["lean"]}


class Stream(unittest.TestCase):
    def test_texts(self) -> None:
        model = StreamClassifier(positive="spam", config=SMALL)
        self.assertEqual(model.predict_proba_one("a prize"), {})
        self.assertIsNone(model.predict_one("a prize"))
        for i in range(30):
            model.learn_one(f"prize {i % 3}", "spam", source="desk")
            model.learn_one(f"lunch {i % 3}", "ham")
        answer = model.predict_proba_one("a prize")
        self.assertEqual(set(answer), {"spam", "ham"})
        self.assertAlmostEqual(sum(answer.values()), 1)
        self.assertEqual((model.predict_one("a prize"), model.predict_one("lunch")), ("spam", "ham"))
        lo, hi = model.predict_interval_one("a prize")
        self.assertTrue(lo <= answer["spam"] <= hi)
        self.assertEqual(model.explain_one("a prize")["p"], answer["spam"])
        with self.assertRaisesRegex(ValueError, "third label"):
            model.learn_one("a prize", "phish")
        self.assertEqual(model.model.info()["events"], 60)

    def test_bodies(self) -> None:
        """Mails, empty texts, and dicts with gaps, words and no numbers at all are taken."""
        model = StreamClassifier(config=SMALL)
        for x in (b"Subject: a\r\n\r\nb\r\n", "", {}, {"a": 1, "b": None, "c": math.nan, "d": "word", 5: True}):
            model.learn_one(x, True)
            self.assertEqual(set(model.predict_proba_one(x)), {False, True})
        self.assertEqual(model.model.info()["events"], 4)
        words = {w["text"] for w in model.explain_one({"a": 1, "b": None, "d": "word", 5: True}, words=20)["words"]}
        self.assertEqual(words, {"a", "d=word", "5"})
        for x in (3, {"a": [1]}):
            with self.assertRaises(TypeError):
                model.learn_one(x, True)
        with self.assertRaisesRegex(ValueError, "not None"):
            model.learn_one("a", None)

    def test_dense(self) -> None:
        """Dense features enter the model as they are, and must be there."""
        model = StreamClassifier(dense=["a"], config=SMALL)
        twin = copy.deepcopy(model)
        for i in range(40):
            model.learn_one({"a": float(i % 2), "b": 1.0}, i % 2 == 1)
        self.assertGreater(model.predict_proba_one({"a": 1})[True], 0.8)
        self.assertLess(model.predict_proba_one({"a": 0})[True], 0.2)
        with self.assertRaisesRegex(ValueError, "refused"):
            model.learn_one({"b": 1.0}, True)
        self.assertEqual(model.model.info()["config"]["dense"], ["a"])
        self.assertEqual(twin.model.info()["events"], 0)
