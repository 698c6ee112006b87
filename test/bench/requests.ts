import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { issueRoot, kubeadmCaTtlMs } from '../../src/ca/root.ts'
import { createRequest } from '../../src/x509/issuing.ts'
import { generatePrivateKey, writePrivateKey } from '../../src/x509/new-key.ts'
import { writePem } from '../../src/x509/pem.ts'

/** A P-256 CA and requests for it. */
export interface RequestFolder {
  readonly ca: string
  readonly caKey: string
  /** One file with all requests. */
  readonly all: string
  /** Shell pattern of the files with one request each. */
  readonly each: string
}

/**
 * Writes a CA and `count` serving requests, each with its own P-256 key and SANs. Returns their paths. The CA is valid from now
 * on, because the peers use the system clock.
 */
export function requestFolder(root: string, count: number, now: Date): RequestFolder {
  mkdirSync(root, { recursive: true })
  const p256 = { algorithm: 'ECDSA', curve: 'P-256' } as const
  const key = generatePrivateKey(p256)
  const ca = issueRoot({ subject: { commonName: 'bench-ca' }, ttlMs: kubeadmCaTtlMs }, key, now, '01')
  const write = (name: string, text: string): string => {
    writeFileSync(join(root, name), text)
    return join(root, name)
  }
  const requests = Array.from({ length: count }, (_, index) => {
    const name = `node-${index}.bench.example`
    const subjectAltNames = { dns: [name], ip: [`10.1.${(index >> 8) & 255}.${index & 255}`] }
    const subject = { organization: ['bench'], commonName: name }
    const pem = writePem(
      'CERTIFICATE REQUEST',
      createRequest({ subject, subjectAltNames }, generatePrivateKey(p256)),
    )
    write(`request-${String(index).padStart(5, '0')}.csr`, pem)
    return pem
  })
  return {
    ca: write('ca.pem', writePem('CERTIFICATE', ca.der)),
    caKey: write('ca-key.pem', writePrivateKey(key, 'pkcs8')),
    all: write('all.pem', requests.join('')),
    each: join(root, 'request-*.csr'),
  }
}
