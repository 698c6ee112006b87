import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { freePort } from '../../../test/node/ports.ts'
import { serveTexts } from './metrics-output.ts'

test('a client that sends nothing loses its connection', async () => {
  const port = await freePort()
  const endpoint = { name: `127.0.0.1:${port}`, host: '127.0.0.1', port }
  const server = await serveTexts('--listen', endpoint, {
    '/healthz': () => ({ status: 200, type: 'text/plain', text: 'ok' }),
  })
  try {
    const silent = connect(port, '127.0.0.1')
    // The server answers 408 first.
    silent.resume()
    await once(silent, 'close')
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`)
    expect([answer.status, await answer.text()]).toEqual([200, 'ok'])
  } finally {
    await server.close()
  }
}, 20_000)
