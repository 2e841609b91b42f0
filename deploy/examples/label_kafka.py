"""Labels a text over a real Kafka, which hamlet up has not (pip install kafka-python). The variables
are those that deploy/servers env prints with --acl."""
import json
import os

from kafka import KafkaProducer

producer = KafkaProducer(
    bootstrap_servers=os.environ["HAMLET_KAFKA"],
    security_protocol="SASL_PLAINTEXT",
    sasl_mechanism=os.environ["HAMLET_KAFKA_SASL"].upper(),
    sasl_plain_username=os.environ["HAMLET_KAFKA_USER"],
    sasl_plain_password=os.environ["HAMLET_KAFKA_PASSWORD"],
    acks="all",
)
event = {"id": "python-kafka", "source": "example", "label": "ham", "text": "See you at lunch"}
headers = [("content-type", b"application/json")]
sent = producer.send("hamlet.events.default", json.dumps(event).encode(), b"example", headers)
print(sent.get(timeout=30).offset)
producer.close()
