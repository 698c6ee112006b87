// The lab's in-pod client in Node: opens a TLS connection to the API server each second, and serves its counts on :8080/counts.
// It reads the CA once, as Node clients do.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { request } from 'node:https'

const account = '/var/run/secrets/kubernetes.io/serviceaccount/'
const ca = readFileSync(`${account}ca.crt`)
const started = new Date()
const counts = {
  client: 'node',
  started,
  attempts: 0,
  failures: 0,
  lastSuccess: started,
  longestGapMs: 0,
  errors: {},
}

function attempt() {
  const options = {
    host: process.env.KUBERNETES_SERVICE_HOST,
    port: process.env.KUBERNETES_SERVICE_PORT,
    path: '/version',
    ca,
    agent: false,
    timeout: 5000,
    headers: { authorization: `Bearer ${readFileSync(`${account}token`, 'utf8')}` },
  }
  const call = request(options, (response) => {
    response.resume()
    response.on('end', () =>
      response.statusCode === 200 ? succeeded() : failed(`HTTP ${response.statusCode}`),
    )
  })
  call.on('timeout', () => call.destroy(new Error('timeout')))
  call.on('error', (error) => failed(error.code ?? error.message))
  call.end()
}

function succeeded() {
  const now = new Date()
  if (counts.attempts++ > 0) counts.longestGapMs = Math.max(counts.longestGapMs, now - counts.lastSuccess)
  counts.lastSuccess = now
}

function failed(why) {
  if (counts.attempts === 0) {
    counts.earlyFailures++ // before the first success: the node's own start, not the cluster's
    return
  }
  counts.attempts++
  counts.failures++
  counts.errors[why] = (counts.errors[why] ?? 0) + 1
  console.log(why)
}

setInterval(attempt, 1000)
createServer((_, response) => response.end(JSON.stringify(counts))).listen(8080)
process.on('SIGTERM', () => process.exit(0))
