from __future__ import annotations

import contextlib
import email.utils
import http.server
import threading
import time
import unittest
from collections.abc import Callable, Iterator

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

    def test_redirect(self) -> None:
        """The token does not go where a redirect leads."""
        with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (other, asked):
            for status in (301, 302, 303, 307, 308):
                reply = f"HTTP/1.1 {status} Gone\r\nLocation: {other}/v1/info\r\nContent-Length: 0\r\n\r\n"
                with answering(reply.encode()) as (url, _), self.assertRaises(ScorerError) as refused:
                    Scorer(url, token="secret", timeout=WAIT).info()
                self.assertEqual((refused.exception.status, refused.exception.retry_after), (status, None))
            self.assertEqual(asked, [])

    def test_retry_after(self) -> None:
        """Retry-After is a number of seconds or a date."""
        past, soon = "Sun, 06 Nov 1994 08:49:37 GMT", email.utils.formatdate(time.time() + 1000, usegmt=True)
        for wait, least, most in (("3", 3, 3), (past, 0, 0), (soon, 900, 1000), ("soon", None, None), ("inf", None, None), ("-1", 0, 0)):
            reply = f"HTTP/1.1 503 Busy\r\nRetry-After: {wait}\r\nContent-Length: 16\r\n\r\n" + '{"error":"busy"}'
            with answering(reply.encode()) as (url, _), self.assertRaisesRegex(ScorerError, "busy") as refused:
                Scorer(url, timeout=WAIT).info()
            got = refused.exception.retry_after
            self.assertEqual(refused.exception.status, 503)
            if least is None or most is None:
                self.assertIsNone(got, wait)
            else:
                assert got is not None, wait
                self.assertTrue(least <= got <= most, (wait, got))

    def test_broken_answers(self) -> None:
        """An answer that is cut short, or is of something else, is an error of the scorer."""
        for reply, status, reason in (
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", 0, "IncompleteRead"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", 200, "not JSON"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\xff", 200, "not JSON"),
            (b"SSH-2.0-OpenSSH\r\n", 0, "SSH"),
            (b"HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\n{}", 500, "500"),
        ):
            with answering(reply) as (url, _), self.assertRaisesRegex(ScorerError, reason) as refused:
                Scorer(url, timeout=WAIT).info()
            self.assertEqual(refused.exception.status, status, reply)


@contextlib.contextmanager
def answering(reply: bytes) -> Iterator[tuple[str, list[str]]]:
    """Run a server whose every answer is reply. It yields its URL and what it was asked."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


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
