import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { issueCertificate } from '../../src/x509/issuing.ts'
import { generatePrivateKey } from '../../src/x509/new-key.ts'
import { writePem } from '../../src/x509/pem.ts'
import { startApiServer } from '../fakes/api-server.ts'

// The servers of the live tables, in a separate process: TLS endpoints, and the fake API server with Secrets. node
// live-servers.ts FOLDER ENDPOINTS SECRETS writes ca.crt, endpoints and admin.conf, then ready.

const [folder = '', endpoints = '0', secrets = '0'] = process.argv.slice(2)
const server = await startApiServer()
const at = (name: string): string => join(folder, name)
writeFileSync(at('ca.crt'), server.caPem)
server.writeKubeconfig(at('admin.conf'))

const { certificate, key } = server.issue('localhost', [], {
  usage: 'serverAuth',
  names: { ip: ['127.0.0.1'] },
})
const addresses = await Promise.all(Array.from({ length: Number(endpoints) }, listening))
writeFileSync(at('endpoints'), `${addresses.join('\n')}\n`)
for (let index = 0; index < Number(secrets); index++) putSecret(index)
writeFileSync(at('ready'), '')

async function listening(): Promise<string> {
  const listener = createServer({ cert: certificate, key })
  listener.on('secureConnection', (socket) => socket.on('error', () => {}))
  listener.on('tlsClientError', () => {})
  await new Promise<void>((ready) => listener.listen(0, '127.0.0.1', 512, ready))
  return `127.0.0.1:${(listener.address() as AddressInfo).port}`
}

/** Each Secret has its own key and certificate, because duplicates cost less. */
function putSecret(index: number): void {
  const own = generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' })
  const name = `web-${index}`
  const der = issueCertificate(
    {
      serialNumber: randomBytes(8).toString('hex').replace(/^./, '1'),
      subject: { commonName: name },
      issuer: server.signingCa.certificate.subject,
      notBefore: new Date('2026-11-01T00:00:00Z'),
      notAfter: new Date(Date.parse('2027-11-01T00:00:00Z') + index * 1000),
      publicKey: own,
      keyUsage: ['digitalSignature'],
      extendedKeyUsage: ['serverAuth'],
      basicConstraints: { ca: false },
      subjectAltNames: { dns: [`${name}.example.com`] },
    },
    server.signingCa.key,
  )
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const namespace = `team-${index % 100}`
  server.put(
    { group: '', version: 'v1', resource: 'secrets', namespace },
    {
      metadata: { name, namespace },
      type: 'kubernetes.io/tls',
      data: {
        'tls.crt': base64(writePem('CERTIFICATE', der)),
        'tls.key': base64(own.export({ format: 'pem', type: 'pkcs8' }) as string),
      },
    },
  )
}
