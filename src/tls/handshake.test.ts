import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { type TlsPair, tlsPair } from '../../test/pki/tls-pair.ts'
import { opensslServer } from '../../test/tls/openssl-server.ts'
import { Certificate } from '../x509/certificate.ts'
import { parseName } from '../x509/name.ts'
import { type HandshakeOptions, handshake, type TlsVersion } from './handshake.ts'

const ca = tlsPair('kubernetes')
const server = tlsPair('kube-apiserver', ca)
const client = tlsPair('kubernetes-admin', ca)
const strangers = tlsPair('kubernetes-admin', tlsPair('somebody else'))
const pairOf = ({ certificate, keyPem }: TlsPair) => ({ certificate, key: keyPem })

const folder = mkdtempSync(join(tmpdir(), 'kcert-handshake-'))
afterAll(() => rmSync(folder, { recursive: true }))
writeFileSync(join(folder, 'ca.crt'), ca.certificate)
writeFileSync(join(folder, 'server.pem'), server.certificate + server.keyPem, { mode: 0o600 })

function openssl(version: TlsVersion, words: readonly string[]): Promise<number> {
  return opensslServer(folder, ...words, version === 'TLSv1.2' ? '-tls1_2' : '-tls1_3')
}

const ask = { method: 'GET', path: '/' }

function shake(port: number, options: Partial<HandshakeOptions> = {}) {
  return handshake(connect({ host: '127.0.0.1', port }), { host: 'localhost', timeoutMs: 10_000, ...options })
}

function casOf(names: readonly Uint8Array[] | undefined) {
  return names?.map((der) => parseName(der).text)
}

const insisting = ['-CAfile', 'ca.crt', '-Verify', '1', '-verify_return_error']

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('%s', (version) => {
  test('returns version, cipher and durations', async () => {
    const seen = await shake(await openssl(version, []))
    expect([seen.version, seen.clientAuthorities]).toEqual([version, undefined])
    expect(seen.cipher).toMatch(version === 'TLSv1.3' ? /^TLS_/ : /^TLS_ECDHE_ECDSA_/)
    expect(seen.connectMs).toBeGreaterThan(0)
    expect(seen.handshakeMs).toBeGreaterThan(0)
    const [leaf] = seen.chain
    expect(Certificate.parse(leaf!).subject.text).toBe('CN=kube-apiserver')
  })

  test("returns the CAs in the server's certificate request, required or optional", async () => {
    for (const words of [['-CAfile', 'ca.crt', '-verify', '1'], insisting]) {
      const { clientAuthorities } = await shake(await openssl(version, words))
      expect(casOf(clientAuthorities)).toEqual(['CN=kubernetes'])
    }
  })

  test('sends a client certificate of that CA, and returns the response to the request', async () => {
    const seen = await shake(await openssl(version, insisting), { client: pairOf(client), ask })
    expect([seen.answer?.status, seen.fault]).toEqual([200, undefined])
  })

  test('returns the alert for a certificate of another CA, whenever it arrives', async () => {
    const seen = await shake(await openssl(version, insisting), { client: pairOf(strangers), ask })
    expect([seen.answer, (seen.fault as NodeJS.ErrnoException).code]).toEqual([
      undefined,
      'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
    ])
    expect(casOf(seen.clientAuthorities)).toEqual(['CN=kubernetes'])
  })

  test('fails for a version that the server does not support', async () => {
    const port = await openssl(version, [])
    const other = version === 'TLSv1.2' ? 'TLSv1.3' : 'TLSv1.2'
    await expect(shake(port, { version: other })).rejects.toMatchObject({
      code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    })
  })
})

test('sends no request to a server that requests no client certificate', async () => {
  const listening = createServer({ cert: server.certificate, key: server.keyPem }, (socket) => {
    socket.on('error', () => {})
    socket.on('data', () => expect.unreachable('something was asked'))
  })
  await new Promise<void>((ready) => listening.listen(0, '127.0.0.1', ready))
  onTestFinished(() => void listening.close())
  const { port } = listening.address() as { port: number }
  expect(await shake(port, { client: pairOf(client), ask })).toMatchObject({
    answer: undefined,
    fault: undefined,
  })
})

test('returns the chain after the timeout if the server never answers the request', async () => {
  const listening = createServer({
    cert: server.certificate,
    key: server.keyPem,
    requestCert: true,
    rejectUnauthorized: false,
  })
  listening.on('secureConnection', (socket) => socket.on('error', () => {}))
  await new Promise<void>((ready) => listening.listen(0, '127.0.0.1', ready))
  onTestFinished(() => void listening.close())
  const { port } = listening.address() as { port: number }
  const seen = await shake(port, { client: pairOf(client), ask, timeoutMs: 5_000 })
  expect([seen.chain.length, (seen.fault as NodeJS.ErrnoException).code]).toEqual([1, 'ETIMEDOUT'])
})
