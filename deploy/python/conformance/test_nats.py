from __future__ import annotations

import asyncio
import json
import time

import pytest

from hamlet import AsyncScorer, Scorer, ScorerError, run
from tests.server import WAIT, up

TEXTS = "".join(f"{label}\t{word} number {i % 5}\n" for i in range(40) for label, word in (("spam", "prize"), ("ham", "lunch")))


def test_scoring_service(monkeypatch):
    """The answers over NATS are those of the HTTP door."""
    with up(TEXTS) as server:
        monkeypatch.setenv("XDG_RUNTIME_DIR", server.environment["XDG_RUNTIME_DIR"])
        login = json.loads(run(["env", "--for=json", server.nats]))["nats_client"]
        web = Scorer(server.http, token=server.token, timeout=WAIT)
        asyncio.run(ask(login["url"], web))

        async def guess():
            async with AsyncScorer(f"nats://{server.nats}", user="client", password="guess"):
                pass

        with pytest.raises(ScorerError, match="connect to NATS"):
            asyncio.run(guess())


async def ask(url, web):
    with pytest.raises(ScorerError, match="not connected"):
        await AsyncScorer(url).info()
    async with AsyncScorer(url, timeout=WAIT) as scorer:
        deadline = time.monotonic() + WAIT
        while True:
            try:
                if (await scorer.info())["events"] == 80:
                    break
            except ScorerError as e:
                assert e.retry_after is not None, e
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        one = await scorer.score("a prize")
        assert one["p"] == web.score("a prize")["p"] > 0.5
        assert (await scorer.explain("a prize"))["words"][0]["text"] == "prize"
        many = await scorer.score_many(["a prize", b"Subject: lunch\r\n\r\nhello\r\n"] * 300)
        assert len(many) == 600 and many[598]["p"] == one["p"]
        with pytest.raises(ScorerError, match="label") as refused:
            await scorer.score({"text": "a prize", "label": "spam"})
        assert (refused.value.status, refused.value.retry_after) == (400, None)
    async with AsyncScorer(url, model="none", timeout=WAIT) as scorer:
        with pytest.raises(ScorerError, match="no scorer") as nobody:
            await scorer.score("a prize")
        assert nobody.value.status == 503
