import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from './command.ts'
import type { ClusterSpec } from './spec.ts'

/** A certificate and its key as PEM. */
export interface KeyPair {
  readonly certificate: string
  readonly key: string
}

export interface LeafRequest {
  readonly commonName: string
  readonly organizations?: readonly string[]
  /** subjectAltName in OpenSSL's syntax: `DNS:name`, `IP:address`. */
  readonly names?: readonly string[]
  readonly usages: readonly ('serverAuth' | 'clientAuth')[]
}

const days = { ca: '3650', leaf: '365' }

/** Creates a self-signed CA with OpenSSL, so that the code under test does not create the lab's certificates. */
export async function makeCa(commonName: string, keys: ClusterSpec['keys']): Promise<KeyPair> {
  return inScratch(async (folder) => {
    const extensions = [
      'basicConstraints=critical,CA:TRUE',
      'keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign',
      'subjectKeyIdentifier=hash',
    ]
    const subject = [
      '-subj',
      `/CN=${commonName}`,
      ...extensions.flatMap((extension) => ['-addext', extension]),
    ]
    await run([
      'openssl',
      'req',
      '-x509',
      '-days',
      days.ca,
      ...newKey(keys),
      '-keyout',
      join(folder, 'key'),
      '-out',
      join(folder, 'crt'),
      ...subject,
    ])
    return pairIn(folder)
  })
}

/** Issues a leaf with a new key, signed by a CA. */
export async function issue(ca: KeyPair, request: LeafRequest, keys: ClusterSpec['keys']): Promise<KeyPair> {
  return inScratch(async (folder) => {
    writeFileSync(join(folder, 'ca.crt'), ca.certificate)
    writeFileSync(join(folder, 'ca.key'), ca.key, { mode: 0o600 })
    const extensions = [
      'basicConstraints=critical,CA:FALSE',
      'keyUsage=critical,digitalSignature,keyEncipherment',
      `extendedKeyUsage=${request.usages.join(',')}`,
      'subjectKeyIdentifier=hash',
      'authorityKeyIdentifier=keyid',
      ...(request.names === undefined ? [] : [`subjectAltName=${request.names.join(',')}`]),
    ]
    writeFileSync(join(folder, 'extensions'), `${extensions.join('\n')}\n`)
    const subject = [
      ...(request.organizations ?? []).map((name) => `/O=${name}`),
      `/CN=${request.commonName}`,
    ].join('')
    await run([
      'openssl',
      'req',
      '-new',
      ...newKey(keys),
      '-keyout',
      join(folder, 'key'),
      '-subj',
      subject,
      '-out',
      join(folder, 'csr'),
    ])
    const signer = [
      '-CA',
      join(folder, 'ca.crt'),
      '-CAkey',
      join(folder, 'ca.key'),
      '-set_serial',
      `0x${serial()}`,
    ]
    await run([
      'openssl',
      'x509',
      '-req',
      '-in',
      join(folder, 'csr'),
      ...signer,
      '-days',
      days.leaf,
      '-extfile',
      join(folder, 'extensions'),
      '-out',
      join(folder, 'crt'),
    ])
    return pairIn(folder)
  })
}

/** Creates a request for a client certificate, and discards its key. */
export async function issueRequest(commonName: string): Promise<string> {
  return inScratch(async (folder) => {
    const out = ['-keyout', join(folder, 'key'), '-out', join(folder, 'csr')]
    await run(['openssl', 'req', '-new', ...newKey('ECDSA-P256'), '-subj', `/CN=${commonName}`, ...out])
    return readFileSync(join(folder, 'csr'), 'utf8')
  })
}

/** Reads a pair from two files. */
export function readPair(certificateFile: string, keyFile: string): KeyPair {
  return { certificate: readFileSync(certificateFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
}

function newKey(keys: ClusterSpec['keys']): string[] {
  const algorithm = keys === 'RSA-2048' ? ['rsa:2048'] : ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']
  return ['-nodes', '-newkey', ...algorithm]
}

/** 127 random bits: positive, and at most 20 bytes as RFC 5280 section 4.1.2.2 requires. */
function serial(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[0]! &= 0x7f
  return Buffer.from(bytes).toString('hex')
}

function pairIn(folder: string): KeyPair {
  return readPair(join(folder, 'crt'), join(folder, 'key'))
}

async function inScratch<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-lab-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
