import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { certificatePem, keyPem, signedBy, testCa, testKey } from '../../test/pki/kubeadm-tree.ts'
import { opensslServer } from '../../test/tls/openssl-server.ts'
import { etcdClientVerdict } from './etcd-client.ts'

// OpenSSL's server requires client certificates as etcd does, and sends an alert to a rejected client.

const begun = new Date(Date.now() - 3_600_000)
const ends = new Date(Date.now() + 3_600_000)
const oldCa = testCa('etcd-ca', testKey('etcd client old'), begun)
const newCa = testCa('etcd-ca-2', testKey('etcd client new'), begun)
const bridge = signedBy(oldCa, {
  commonName: 'etcd-ca-2',
  key: newCa.key,
  notBefore: begun,
  notAfter: ends,
  basicConstraints: { ca: true },
  keyUsage: ['keyCertSign'],
} as never)

function pairOf(ca: typeof oldCa, ...chain: readonly Uint8Array[]) {
  const key = testKey('etcd client leaf')
  const usages = ['serverAuth', 'clientAuth']
  const leaf = signedBy(ca, {
    commonName: 'client',
    key,
    notBefore: begun,
    notAfter: ends,
    extendedKeyUsage: usages,
  } as never)
  return { certificate: certificatePem(leaf, ...chain), key: keyPem(key) }
}

const folder = mkdtempSync(join(tmpdir(), 'kcert-etcd-client-'))
afterAll(() => rmSync(folder, { recursive: true }))
const served = pairOf(oldCa)
writeFileSync(join(folder, 'server.pem'), served.certificate + served.key, { mode: 0o600 })
writeFileSync(join(folder, 'old.crt'), certificatePem(oldCa.certificate))
writeFileSync(join(folder, 'new.crt'), certificatePem(newCa.certificate))

function member(trust: 'old' | 'new', version: string): Promise<number> {
  return opensslServer(folder, '-CAfile', `${trust}.crt`, '-Verify', '3', '-verify_return_error', version)
}

const site = { dial: (_node: string, host: string, port: number) => connect({ host, port }) }
const ask = (port: number, pair: ReturnType<typeof pairOf>) =>
  etcdClientVerdict(site, 'cp1', { host: '127.0.0.1', port }, pair)

test.each(['-tls1_2', '-tls1_3'])(
  '%s: every mix that the rotation uses is accepted, every other one refused',
  async (version) => {
    const [old, bare, bridged] = [pairOf(oldCa), pairOf(newCa), pairOf(newCa, bridge)]
    const verdicts = async (trust: 'old' | 'new') => {
      const port = await member(trust, version)
      const found = []
      for (const pair of [old, bare, bridged]) found.push((await ask(port, pair)).verdict)
      return found
    }
    expect(await verdicts('old')).toEqual(['accepted', 'refused', 'accepted'])
    expect(await verdicts('new')).toEqual(['refused', 'accepted', 'accepted'])
  },
)

test('a connection that ends without an answer proves nothing', async () => {
  const server = createServer((socket) => void socket.end())
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', () => done()))
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  expect((await ask(port, pairOf(oldCa))).verdict).toBe('unknown')
})
