import { createPrivateKey, type KeyObject, sign, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Cluster } from './fixture.ts'
import { nodeFileNames } from './rotation-aftermath.ts'

// Expired certificates of a cluster, as after years of neglect. Each keeps names, keys and extensions, and its own CA signs it
// again for a period in the past. They are created with node:crypto, so that the code under test does not create the lab's
// certificates.

/** The certificates that expire: with the CAs, or only those signed by them. */
export type Aged = 'all' | 'leaves'

interface Signer {
  readonly certificate: X509Certificate
  readonly key: KeyObject
}

const signers = ['ca', 'front-proxy-ca', 'etcd/ca'].map((name) => `/etc/kubernetes/pki/${name}`)
const certificateBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g
const embedded = /((?:certificate-authority|client-certificate)-data: )([A-Za-z0-9+/=]+)/g

/**
 * Replaces every certificate on every node of a kubeadm cluster by one that expired an hour ago. Returns the number of changed
 * files.
 */
export function ageCertificates(cluster: Cluster, aged: Aged): number {
  const first = signers.flatMap((path) => signerAt(cluster, path))
  let changed = 0
  for (const file of nodeFileNames(cluster)) {
    const before = readFileSync(file, 'utf8')
    const inPem = (text: string): string =>
      text.replaceAll(certificateBlock, (pem) => ended(pem, first, aged))
    const after = inPem(before).replaceAll(embedded, (_, field: string, data: string) => {
      const text = inPem(Buffer.from(data, 'base64').toString('utf8'))
      return field + Buffer.from(text).toString('base64')
    })
    if (after === before) continue
    writeFileSync(file, after)
    changed += 1
  }
  return changed
}

const stopAll =
  'systemctl stop kubelet; for p in /proc/[0-9]*; do case $(cat $p/comm 2>/dev/null) in kube-*|etcd) kill -9 $(basename $p);; esac; done; systemctl start kubelet'

/** Simulates a power failure of every node: no process continues, and the kubelet starts first. */
export async function failPower(cluster: Cluster): Promise<void> {
  for (const { name } of cluster.nodes()) await cluster.onNode(name, ['sh', '-c', stopAll])
}

function signerAt(cluster: Cluster, path: string): Signer[] {
  const [certificate, key] = [`${path}.crt`, `${path}.key`].map((file) => cluster.hostPath('cp1', file))
  if (!existsSync(key!)) return []
  return [
    {
      certificate: new X509Certificate(readFileSync(certificate!)),
      key: createPrivateKey(readFileSync(key!)),
    },
  ]
}

function ended(pem: string, known: readonly Signer[], aged: Aged): string {
  const certificate = new X509Certificate(pem)
  if (certificate.ca && aged === 'leaves') return pem
  const signer = known.find(
    (one) => certificate.checkIssued(one.certificate) && certificate.verify(one.certificate.publicKey),
  )
  return signer === undefined ? pem : toPem(withEndedValidity(certificate.raw, signer.key))
}

/** Returns the same to-be-signed part with other times, which are two UTCTimes of 13 characters, and a valid signature. */
function withEndedValidity(der: Buffer, key: KeyObject): Buffer {
  const outer = headerAt(der, 0)
  const tbs = headerAt(der, outer.start)
  const toSign = Buffer.from(der.subarray(outer.start, tbs.end))
  const times = toSign.indexOf(Buffer.from([0x30, 0x1e, 0x17, 0x0d]))
  if (times === -1) throw new TypeError('no validity of two UTCTimes')
  const hoursAgo = (hours: number): string =>
    `${new Date(Date.now() - hours * 3_600_000).toISOString().replaceAll(/[-:T]/g, '').slice(2, 14)}Z`
  toSign.write(hoursAgo(365 * 24), times + 4, 'latin1')
  toSign.write(hoursAgo(1), times + 19, 'latin1')
  const algorithm = der.subarray(tbs.end, headerAt(der, tbs.end).end)
  const signature = tagged(0x03, Buffer.concat([Buffer.of(0), sign('sha256', toSign, key)]))
  return tagged(0x30, Buffer.concat([toSign, algorithm, signature]))
}

function headerAt(der: Buffer, at: number): { start: number; end: number } {
  const first = der[at + 1]!
  const count = first < 0x80 ? 0 : first & 0x7f
  const length = count === 0 ? first : der.readUIntBE(at + 2, count)
  const start = at + 2 + count
  return { start, end: start + length }
}

function tagged(tag: number, content: Buffer): Buffer {
  const length = content.length
  const header =
    length < 0x80
      ? [tag, length]
      : length < 0x100
        ? [tag, 0x81, length]
        : [tag, 0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(header), content])
}

function toPem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g)!
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}
