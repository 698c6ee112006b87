import { generateKeyPairSync } from 'node:crypto'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { createServer, type TlsOptions } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { type TlsPair, tlsPair } from '../../test/pki/tls-pair.ts'
import type { KcertError } from '../errors/kcert-error.ts'
import { readPem } from '../x509/pem.ts'
import type { Endpoint } from './endpoint.ts'
import { readServed } from './served.ts'

const oldCa = tlsPair('kubernetes')
const leaf = tlsPair('localhost', oldCa)
const newCa = tlsPair('kubernetes')
const unrelated = tlsPair('unrelated')

const pem = (...of: TlsPair[]) => of.map(({ certificate }) => certificate).join('')

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function listening(server: Server, host = '127.0.0.1'): Promise<Endpoint> {
  servers.push(server)
  await new Promise<void>((ready) => server.listen(0, host, ready))
  const { port } = server.address() as AddressInfo
  return { name: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`, host, port }
}

function serving(chain: readonly TlsPair[], options: TlsOptions = {}): Server {
  const server = createServer({ cert: pem(...chain), key: chain[0]!.keyPem, ...options })
  // A client that disconnects after the handshake is not a server error.
  server.on('secureConnection', (socket) => socket.on('error', () => {}))
  server.on('tlsClientError', () => {})
  return server
}

async function servedBy(endpoint: Endpoint, timeoutMs = 5000): Promise<Buffer[]> {
  const { bytes, name } = await readServed(endpoint, timeoutMs)
  expect(name).toBe(endpoint.name)
  return readPem(bytes).blocks.map(({ der }) => Buffer.from(der))
}

const ders = (...of: TlsPair[]) => of.map(({ der }) => Buffer.from(der))

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('%s', (version) => {
  const only = { minVersion: version, maxVersion: version }

  test('returns the chain as sent: out of order, with unrelated and duplicate certificates, and without additions', async () => {
    const chain = [leaf, unrelated, newCa, oldCa]
    expect(await servedBy(await listening(serving(chain, only)))).toEqual(ders(...chain))
  })

  test('returns a single leaf alone', async () => {
    expect(await servedBy(await listening(serving([leaf], only)))).toEqual(ders(leaf))
  })

  test('returns the chain of a server that requires a client certificate', async () => {
    const server = serving([leaf, oldCa], {
      ...only,
      requestCert: true,
      rejectUnauthorized: true,
      ca: pem(newCa),
    })
    expect(await servedBy(await listening(server))).toEqual(ders(leaf, oldCa))
  })

  test.each(
    version === 'TLSv1.3'
      ? ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256']
      : ['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  )('with %s', async (ciphers) => {
    expect(await servedBy(await listening(serving([leaf, unrelated], { ...only, ciphers })))).toEqual(
      ders(leaf, unrelated),
    )
  })

  test('returns a chain longer than a record completely', async () => {
    const chain = [leaf, ...Array<TlsPair>(60).fill(unrelated)]
    expect(await servedBy(await listening(serving(chain, only)))).toEqual(ders(...chain))
  })

  test('follows a server that asks to begin again with another group', async () => {
    expect(
      await servedBy(await listening(serving([leaf, unrelated], { ...only, ecdhCurve: 'P-521' }))),
    ).toEqual(ders(leaf, unrelated))
  })
})

test('sends a name to the server, so that it can choose its certificate', async () => {
  const asked: string[] = []
  const server = serving([leaf], {
    SNICallback: (name, chosen) => {
      asked.push(name)
      chosen(null)
    },
  })
  const endpoint = await listening(server)
  await servedBy({ ...endpoint, host: 'localhost', name: 'localhost' })
  await servedBy(endpoint)
  expect(asked).toEqual(['localhost'])
})

test('connects to IPv6 addresses', async () => {
  expect(await servedBy(await listening(serving([leaf]), '::1'))).toEqual(ders(leaf))
})

test('returns a weak key', async () => {
  const weak = tlsPair('weak', undefined, generateKeyPairSync('rsa', { modulusLength: 1024 }))
  expect(await servedBy(await listening(serving([weak], { ciphers: 'DEFAULT:@SECLEVEL=0' })))).toEqual(
    ders(weak),
  )
})

describe('exits with 4 and the reason if there is no certificate:', () => {
  async function refusal(endpoint: Endpoint, timeoutMs = 5000): Promise<string> {
    const error = (await readServed(endpoint, timeoutMs).then(
      () => undefined,
      (reason: unknown) => reason,
    )) as KcertError
    expect([error.code, error.exitCode]).toEqual(['KCERT_UNREACHABLE', 4])
    expect(error.message).toBe(`TLS connection to ${endpoint.name} failed`)
    return error.why!
  }

  test('no server listens', async () => {
    const endpoint = await listening(createTcpServer())
    servers.pop()!.close()
    expect(await refusal(endpoint)).toBe('connection refused: nothing listens there')
  })

  test('the name has no address', async () => {
    expect(await refusal({ name: 'none.invalid:1', host: 'none.invalid', port: 1 })).toMatch(
      /^(no such host|the name server)/,
    )
  })

  test('the server speaks another protocol', async () => {
    const endpoint = await listening(
      createTcpServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    )
    expect(await refusal(endpoint)).toBe('the server does not use TLS')
  })

  test('the server supports only other TLS versions', async () => {
    // Alert 70 (RFC 8446 section 6), fatal.
    const alert = Buffer.from([0x15, 3, 1, 0, 2, 2, 70])
    const endpoint = await listening(
      createTcpServer((socket) => socket.once('data', () => socket.end(alert))),
    )
    expect(await refusal(endpoint)).toBe(
      'it ends the handshake without sending a certificate (TLS alert: protocol version)',
    )
    const error: KcertError = await readServed(endpoint, 5000).catch((cause) => cause)
    expect(error.fix).toContain('TLS 1.2 or TLS 1.3')
    expect(error.next).toMatch(/^openssl s_client -connect /)
  })

  test('the server closes the connection', async () => {
    const endpoint = await listening(createTcpServer((socket) => socket.destroy()))
    expect(await refusal(endpoint)).toBe('the connection was closed before the server sent a certificate')
  })

  test('the server does not answer in time', async () => {
    const sockets: { destroy(): void }[] = []
    const endpoint = await listening(createTcpServer((socket) => sockets.push(socket)))
    expect(await refusal(endpoint, 50)).toBe('no answer within 0.05 s (--timeout)')
    for (const socket of sockets) socket.destroy()
  })
})
