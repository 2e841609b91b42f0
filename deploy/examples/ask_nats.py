"""Asks about a text over NATS (pip install nats-py). The variables are hamlet env's."""
import asyncio
import json
import os

import nats


async def main():
    user, password = os.environ["NATS_USER"], os.environ["NATS_PASSWORD"]
    conn = await nats.connect(os.environ["NATS_URL"], user=user, password=password, inbox_prefix=b"_INBOX." + user.encode())
    text, headers = b"You won a prize", {"Content-Type": "text/plain"}
    answer = await conn.request("hamlet.score", text, timeout=30, headers=headers)
    if answer.headers and "Nats-Service-Error" in answer.headers:
        raise SystemExit(answer.headers["Nats-Service-Error"])
    verdict = json.loads(answer.data)
    print(verdict["verdict"], verdict["p"], verdict["interval"])
    await conn.close()

asyncio.run(main())
