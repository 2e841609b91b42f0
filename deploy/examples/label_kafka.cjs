// Labels a text over a real Kafka, which hamlet up has not (npm install kafkajs). The variables are
// those that deploy/servers env prints with --acl.
const { Kafka, logLevel } = require('kafkajs')

async function main() {
  const { HAMLET_KAFKA, HAMLET_KAFKA_SASL, HAMLET_KAFKA_USER, HAMLET_KAFKA_PASSWORD } = process.env
  const kafka = new Kafka({
    brokers: [HAMLET_KAFKA], logLevel: logLevel.ERROR,
    sasl: { mechanism: HAMLET_KAFKA_SASL, username: HAMLET_KAFKA_USER, password: HAMLET_KAFKA_PASSWORD },
  })
  const producer = kafka.producer()
  await producer.connect()
  const event = { id: 'node-kafka', source: 'example', label: 'ham', text: 'See you at lunch' }
  const [sent] = await producer.send({
    topic: 'hamlet.events.default', acks: -1,
    messages: [{ key: 'example', value: JSON.stringify(event), headers: { 'content-type': 'application/json' } }],
  })
  console.log(sent.baseOffset)
  await producer.disconnect()
}
main()
