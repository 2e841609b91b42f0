"""Reads alerts from JetStream, each once (pip install nats-py), until none has come for 2 s."""
import asyncio
import json
import os

import nats


async def main():
    user, password = os.environ["HAMLET_NATS_USER"], os.environ["HAMLET_NATS_PASSWORD"]
    conn = await nats.connect(os.environ["HAMLET_NATS"], user=user, password=password, inbox_prefix=b"_INBOX." + user.encode())
    stream = conn.jetstream()
    alerts = await stream.pull_subscribe("hamlet.alerts.incident.>", durable="python", stream="HAMLET_ALERTS")
    try:
        while True:
            for message in await alerts.fetch(10, timeout=2):
                alert = json.loads(message.data)
                print(alert["incident"], alert["transition"], alert["state"], alert["kind"])
                await message.ack_sync()
    except nats.errors.TimeoutError:
        await conn.close()

asyncio.run(main())
