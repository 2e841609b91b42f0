// Asks about a text over NATS (npm install nats). The variables are hamlet env's.
const { connect, headers } = require('nats')

async function main() {
  const { NATS_URL, NATS_USER, NATS_PASSWORD } = process.env
  const conn = await connect({ servers: NATS_URL, user: NATS_USER, pass: NATS_PASSWORD, inboxPrefix: '_INBOX.' + NATS_USER })
  const kind = headers()
  kind.set('Content-Type', 'text/plain')
  const answer = await conn.request('hamlet.score', 'You won a prize', { headers: kind, timeout: 30000 })
  const refused = answer.headers && answer.headers.get('Nats-Service-Error')
  if (refused) throw new Error(refused)
  const verdict = answer.json()
  console.log(verdict.verdict, verdict.p, verdict.interval)
  await conn.close()
}
main()
