// Reads alerts from JetStream, each once (npm install nats), until none has come for 2 s.
const { connect } = require('nats')

async function main() {
  const { HAMLET_NATS, HAMLET_NATS_USER: user, HAMLET_NATS_PASSWORD: pass } = process.env
  const conn = await connect({ servers: HAMLET_NATS, user, pass, inboxPrefix: '_INBOX.' + user })
  const manager = await conn.jetstreamManager()
  await manager.consumers.add('HAMLET_ALERTS', { durable_name: 'node', ack_policy: 'explicit', filter_subject: 'hamlet.alerts.incident.>' })
  const alerts = await conn.jetstream().consumers.get('HAMLET_ALERTS', 'node')
  for (let message; (message = await alerts.next({ expires: 2000 }));) {
    const alert = message.json()
    console.log(alert.incident, alert.transition, alert.state, alert.kind)
    await message.ackAck()
  }
  await conn.close()
}
main()
