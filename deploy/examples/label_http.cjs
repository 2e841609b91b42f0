// Labels a text over HTTP. HAMLET_HTTP is the door, HAMLET_TOKEN its token.
async function main() {
  const answer = await fetch(process.env.HAMLET_HTTP + '/v1/events', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: 'Bearer ' + process.env.HAMLET_TOKEN },
    body: JSON.stringify({ id: 'node-http', source: 'example', label: 'spam', text: 'You won a prize' }),
    signal: AbortSignal.timeout(30000),
  })
  const said = await answer.json()
  if (answer.status !== 202) throw new Error(said.error) // 202: the log has it
  console.log(said.accepted)
}
main()
