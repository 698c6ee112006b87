import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Server } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { tlsPair } from '../../test/pki/tls-pair.ts'
import { callHttp, callHttps } from './http-call.ts'

const ca = tlsPair('ca')
const serving = tlsPair('cp1', ca)
const open: Server[] = []

afterEach(() => {
  for (const server of open.splice(0)) server.close()
})

async function dialled(server: Server) {
  open.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return connect((server.address() as AddressInfo).port, '127.0.0.1')
}

const plain = (listener: RequestListener) => dialled(createServer(listener))
const secure = (listener: RequestListener) =>
  dialled(createTlsServer({ key: serving.keyPem, cert: serving.certificate }, listener))

test('returns the status of an HTTP response before its body arrives, and closes the connection', async () => {
  const stream = await plain((_, answer) => answer.writeHead(503).write('and so on'))
  expect((await callHttp({ stream, path: '/healthz' })).status).toBe(503)
  expect(stream.destroyed).toBe(true)
})

test.each([
  ['plain', plain, callHttp],
  ['TLS', secure, callHttps],
] as const)('a server that does not answer ends the call in its time: %s', async (_, dial, call) => {
  const stream = await dial(() => {})
  await expect(call({ stream, path: '/', timeoutMs: 300 })).rejects.toThrow('no answer within 0.3 s')
  expect(stream.destroyed).toBe(true)
})

test('returns a redirect without following it', async () => {
  const stream = await secure((_, answer) =>
    answer.writeHead(302, { Location: 'https://elsewhere/' }).end('no'),
  )
  expect(await callHttps({ stream, path: '/' })).toEqual({ status: 302, body: 'no' })
})

test("sends method, headers and body, and verifies the server's name", async () => {
  const stream = await secure(async ({ method, headers }, answer) => {
    answer.end(JSON.stringify([method, headers.host, headers['content-length'], headers['x-own']]))
  })
  const trust = { ca: ca.certificate, name: 'cp1' }
  const answer = await callHttps({
    stream,
    method: 'PUT',
    path: '/',
    headers: { 'X-Own': '1' },
    body: 'ü',
    trust,
  })
  expect(JSON.parse(answer.body)).toEqual(['PUT', 'cp1', '2', '1'])
})

test.each([
  ['of another CA', { ca: tlsPair('other').certificate, name: 'cp1' }],
  ['for another name', { ca: ca.certificate, name: 'cp2' }],
])('sends no request to a server with a certificate %s', async (_, trust) => {
  let asked = false
  const stream = await secure((_, answer) => {
    asked = true
    answer.end()
  })
  await expect(callHttps({ stream, path: '/', trust })).rejects.toThrow()
  expect(asked).toBe(false)
})

test('refuses a response larger than 64 MiB', async () => {
  const stream = await secure((_, answer) => {
    const piece = Buffer.alloc(1024 * 1024)
    const more = (): void => {
      while (!answer.destroyed && answer.write(piece)) {}
    }
    answer.on('drain', more)
    more()
  })
  await expect(callHttps({ stream, path: '/' })).rejects.toThrow('the answer is larger than 64 MiB')
})
