from __future__ import annotations

import copy
import hashlib
import os
import pickle
import threading
import unittest
import weakref
from typing import Any
from unittest import mock

import hamlet.model
from hamlet import HamletError, Model, RefusedError
from hamlet.evaluation import replay

SMALL = {"table_bits": 8, "text_experts": ["lean"], "dense": ["a"]}


def events(n: int) -> list[dict[str, Any]]:
    """Return n labelled events of all kinds."""
    out: list[dict[str, Any]] = []
    for i in range(n):
        spam = i % 5 < 2
        word = "prize" if spam else "lunch"
        event: dict[str, Any] = {"id": f"e{i}", "label": "spam" if spam else "ham"}
        if i % 3 == 0:
            event["text"] = f"{word} number {i % 7} für dich"
        elif i % 3 == 1:
            event["mail"] = f"Subject: {word}\r\n\r\nnumber {i % 7}\r\n".encode()
        else:
            event["vector"] = {"a": len(word) + i % 2 + spam, f"b{i % 4}": 0.1 + i}
        out.append(event)
    return out


class Learning(unittest.TestCase):
    def test_same_bytes_as_eval(self) -> None:
        """The same events make eval's model and eval's answers, over several batches and copies."""
        with mock.patch.object(hamlet.model, "_BATCH_EVENTS", 7):
            model = Model(SMALL)
            effects = model.learn(iter(events(40)))
            twin = pickle.loads(pickle.dumps(model))
            effects += twin.learn(events(90)[40:])
        want = replay([events(90)], {"set": {"table_bits": 8, "text_experts": ["lean"], "dense": ["a"]}})
        self.assertEqual(hashlib.sha256(twin.save()).hexdigest(), want["model_sha256"])
        self.assertEqual([e["id"] for e in effects], [f"e{i}" for i in range(90)])
        right = sum((e["p"] >= 0.5) == (i % 5 < 2) for i, e in enumerate(effects))
        self.assertAlmostEqual(1 - right / 90, want["error"])
        # The original has not learnt what its copy has.
        self.assertEqual(model.info()["events"], 40)
        self.assertEqual(copy.deepcopy(model).save(), model.save())

    def test_answers(self) -> None:
        """A score changes nothing, and an explanation sums to the same answer."""
        model = Model(SMALL)
        model.learn(events(60))
        before = model.save()
        body = [{"text": "a prize"}, {"vector": {"a": 6.0}}]
        wide, narrow = model.score(body, 0.99), model.score(body, 0.5)
        for i, why in enumerate(model.explain(iter(body), words=1)):
            self.assertLessEqual(wide[i]["interval"][0], narrow[i]["interval"][0])
            self.assertLessEqual(narrow[i]["interval"][0], why["p"])
            self.assertEqual(why["p"], wide[i]["p"])
            self.assertGreater(len(why["reasons"]), 2)
        self.assertEqual([w["text"] for w in model.explain(body, words=1)[0]["words"]], ["prize"])
        self.assertEqual(model.score([]), [])
        self.assertEqual(model.save(), before)
        self.assertEqual(Model.load(before).score(body), model.score(body))

    def test_actions(self) -> None:
        """Events without an id get one, by which they can be withdrawn."""
        model = Model(SMALL)
        [learnt] = model.learn([{"label": "spam", "text": "a"}])
        gone, again = model.learn([{"action": "unlearn", "of": learnt["id"], "text": "a"}] * 2)
        self.assertEqual((learnt["id"], gone["outcome"], gone["withdrawn"]), ("#1", "withdrawn", 1))
        self.assertIn("withdrawn already", again["error"])

    def test_refused(self) -> None:
        """A refusal leaves the model as it was, and usable."""
        model = Model(SMALL)
        before = model.save()
        for wrong, reason in (
            ([{"label": "spam", "text": "a"}, {"text": "b"}], r"events\[1\]: label: missing"),
            ([{"label": "spam", "vector": {}}], "refused"),
            ([{"label": "spam", "words": "b"}], "unknown field"),
        ):
            with self.assertRaisesRegex(RefusedError, reason):
                model.learn(wrong)
        with self.assertRaisesRegex(ValueError, "level"):
            model.score([], 0.5) or model.score([{"text": "a"}], 2)
        with self.assertRaises(TypeError):
            model.learn([{"label": "spam", "text": b"bytes"}])
        self.assertEqual(model.save(), before)
        with self.assertRaisesRegex(RefusedError, "table_bits"):
            Model({"table_bits": 99})
        with self.assertRaisesRegex(RefusedError, "not a model's bytes"):
            Model.load(b"no model")
        with self.assertRaisesRegex(HamletError, "HAMLET_BIN"):
            Model(binary="/no/such/hamlet")


class Processes(unittest.TestCase):
    def test_parked(self) -> None:
        """Models beyond the bound rest as bytes, and go on where they were."""
        with mock.patch.object(hamlet.model, "MAX_PROCESSES", 2):
            models = [Model(SMALL) for _ in range(3)]
            for event in events(4):
                for model in models:
                    model.learn([event])
                self.assertLessEqual(sum(m._process is not None for m in models), 2)
            alone = Model(SMALL)
            alone.learn(events(4))
            self.assertEqual({m.save() for m in models}, {alone.save()})

    def test_ends(self) -> None:
        """A process ends with its model."""
        model = Model(SMALL)
        assert model._process is not None
        popen, ref = model._process._popen, weakref.ref(model)
        del model
        self.assertIsNone(ref())
        self.assertIsNotNone(popen.poll())
        with Model(SMALL) as model:
            model.close()
            model.close()
        with self.assertRaisesRegex(HamletError, "closed"):
            model.info()

    def test_lost(self) -> None:
        """A process that dies is an error, in this request and in the next."""
        model = Model(SMALL)
        assert model._process is not None
        model._process._popen.kill()
        with self.assertRaisesRegex(HamletError, "hamlet pipe ended with status -9"):
            model.info()
        with self.assertRaisesRegex(HamletError, "lost"):
            model.info()

    def test_ended(self) -> None:
        """A process that was ended is an error of hamlet too."""
        model = Model(SMALL)
        assert model._process is not None
        model._process.stop()
        with self.assertRaisesRegex(HamletError, "hamlet pipe ended with status -9"):
            model.info()
        with self.assertRaisesRegex(HamletError, "lost"):
            model.info()

    def test_lost_before_it_is_parked(self) -> None:
        """A lost process does no harm to the models that need its place."""
        with mock.patch.object(hamlet.model, "MAX_PROCESSES", 2):
            lost, kept = Model(SMALL), Model(SMALL)
            kept.learn(events(3))
            assert lost._process is not None
            lost._process._popen.kill()
            for n in (1, 2):
                self.assertEqual(len(Model(SMALL).learn(events(n))), n)
            with self.assertRaisesRegex(HamletError, "lost"):
                lost.info()
            self.assertEqual(kept.info()["events"], 3)

    def test_cannot_be_parked(self) -> None:
        """A model that cannot be saved keeps its process, and loses nothing."""
        for error in (OSError("no space left"), RefusedError("save: no space left")):
            with mock.patch.object(hamlet.model, "MAX_PROCESSES", 1):
                full = Model(SMALL)
                full.learn(events(3))
                with mock.patch.object(hamlet.model, "_save", side_effect=error):
                    self.assertEqual(Model(SMALL).info()["events"], 0)
                self.assertEqual(full.info()["events"], 3)

    def test_interrupted_while_another_is_parked(self) -> None:
        """A model that came back does not return to the bytes it had before."""
        with mock.patch.object(hamlet.model, "MAX_PROCESSES", 1):
            model, other = Model(SMALL), Model(SMALL)
            self.assertIsNone(model._process)
            with mock.patch.object(other, "_park", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
                model.info()
            model.learn(events(3))
            assert model._process is not None
            model._process._popen.kill()
            with self.assertRaisesRegex(HamletError, "status -9"):
                model.info()
            with self.assertRaisesRegex(HamletError, "lost"):
                model.info()

    def test_interrupted(self) -> None:
        """An interrupted request takes no other request's reply: the process is gone."""
        model = Model(SMALL)
        process = model._process
        assert process is not None
        stdout = mock.Mock(wraps=process._popen.stdout)
        stdout.readline.side_effect = KeyboardInterrupt
        with mock.patch.object(process._popen, "stdout", stdout), self.assertRaises(KeyboardInterrupt):
            model.info()
        self.assertIsNotNone(process._popen.poll())
        with self.assertRaisesRegex(HamletError, "lost"):
            model.info()

    def test_threads(self) -> None:
        """Threads that share models get the answers to their own questions."""
        with mock.patch.object(hamlet.model, "MAX_PROCESSES", 2):
            models = [Model(SMALL) for _ in range(3)]
            for i, model in enumerate(models):
                model.learn(events(10 * (i + 1)))
            wrong: list[Any] = []

            def ask() -> None:
                try:
                    for _ in range(4):
                        for i, model in enumerate(models):
                            if model.info()["events"] != 10 * (i + 1):
                                wrong.append(i)
                except Exception as e:
                    wrong.append(e)

            threads = [threading.Thread(target=ask) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_fork(self) -> None:
        """A fork cannot use the process of its parent, and does not end it."""
        model = Model(SMALL)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                model.info()
            except HamletError as e:
                status = 0 if "fork" in str(e) else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(model.info()["events"], 0)
