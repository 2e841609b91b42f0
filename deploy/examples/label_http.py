"""Labels a text over HTTP. HAMLET_HTTP is the door, HAMLET_TOKEN its token."""
import json
import os
import urllib.request

event = {"id": "python-http", "source": "example", "label": "spam", "text": "You won a prize"}
request = urllib.request.Request(
    os.environ["HAMLET_HTTP"] + "/v1/events",
    json.dumps(event).encode(),
    {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["HAMLET_TOKEN"]},
)
with urllib.request.urlopen(request, timeout=30) as answer:  # 202: the log has it
    print(json.load(answer)["accepted"])
