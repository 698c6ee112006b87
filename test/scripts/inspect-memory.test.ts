import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { largestFileBytes } from '../../src/system/files.ts'
import { writePem } from '../../src/x509/pem.ts'
import { certificatePem, signedBy, testCa, testKey } from '../pki/kubeadm-tree.ts'
import { temporaryFolder } from './temporary-folder.ts'

// A hostile file may use at most 512 MiB, whatever its content. The process reports its own peak, so nothing else is counted.

const mostMiB = 512
const folder = temporaryFolder('memory')
const notBefore = new Date('2026-06-01T08:00:00Z')
const notAfter = new Date('2027-06-01T08:00:00Z')
const ca = testCa('kubernetes', testKey('ca'), notBefore)
const pem = certificatePem(ca.certificate)
const base64 = Buffer.from(pem).toString('base64')

function lines(count: number, line: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => line(index)).join('')
}

function kubeconfig(clusters: number, contexts: number, data: string): string {
  return [
    'apiVersion: v1\nkind: Config\nclusters:\n',
    lines(
      clusters,
      (i) =>
        `- name: c${i}\n  cluster:\n    server: https://h${i}:6443\n    certificate-authority-data: ${data}\n`,
    ),
    'users:\n',
    lines(clusters, (i) => `- name: u${i}\n  user:\n    client-certificate-data: ${data}\n`),
    'contexts:\n',
    lines(
      contexts,
      (i) => `- name: x${i}\n  context:\n    cluster: c${(i * 7) % clusters}\n    user: u${i % clusters}\n`,
    ),
  ].join('')
}

const secrets = lines(
  (18 * 1024 * 1024) / (base64.length + 110),
  (i) =>
    `---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s${i}\n  namespace: n\ntype: kubernetes.io/tls\ndata:\n  tls.crt: ${base64}\n`,
)

test.each([
  ['50,000 contexts', kubeconfig(1000, 50_000, base64)],
  [
    '10,000 clusters and users with data that is none, and 30,000 contexts',
    kubeconfig(10_000, 30_000, 'A'.repeat(800)),
  ],
  ['10,000 clusters and users with certificates', kubeconfig(10_000, 10_000, base64)],
  ['more than is read: 50,000 of each', kubeconfig(50_000, 50_000, 'A'.repeat(40))],
  ['18 MiB of Secrets', secrets],
])('%s take at most 512 MiB', (name, text) => {
  expectWithinBounds('inspect', written(`${name.replaceAll(/\W+/g, '-')}.yaml`, text))
})

test('the maximum number of different certificates in a file takes at most 512 MiB, in every output format', () => {
  const path = written('largest.pem', otherCertificates(largestFileBytes))
  expectWithinBounds('inspect', path, '-o', 'json')
  expectWithinBounds('verify', written('leaf.pem', pem), '--roots', path)
})

test('the maximum number of objects in a file takes at most 512 MiB', () => {
  const secret = (i: number) =>
    `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s${i}"},"data":{"tls.crt":"${base64}"}}`
  const count = Math.floor(largestFileBytes / (secret(100_000).length + 1))
  const list = `{"apiVersion":"v1","kind":"List","items":[${Array.from({ length: count - 1 }, (_, i) => secret(i)).join(',')}]}`
  expectWithinBounds('inspect', written('largest.json', list), '-o', 'json')
})

test('refuses a larger file, with the limit and how to split it', () => {
  const { status, stderr } = run('inspect', written('larger.pem', otherCertificates(largestFileBytes + 2000)))
  expect(status).toBe(2)
  expect(stderr).toContain('larger.pem is larger than 20 MiB, the most that kcert reads of one file')
  expect(stderr).toContain("csplit -sz -n 6 -f DIR/part- FILE '/-----BEGIN/' '{*}'")
})

/** Repeats a leaf with different signatures. CAs would take time, because their own signatures are verified. */
function otherCertificates(bytes: number): string {
  const der = Buffer.from(signedBy(ca, { commonName: 'node', key: testKey('leaf'), notBefore, notAfter }))
  const blocks: string[] = []
  for (let total = 0, i = 0; total <= bytes - pem.length; i++) {
    der.writeUInt32BE(i, der.length - 4)
    const block = writePem('CERTIFICATE', der)
    blocks.push(block)
    total += block.length
  }
  return blocks.join('')
}

function written(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

function run(...args: readonly string[]) {
  const atExit = 'process.on("exit",()=>process.stderr.write("peak="+process.resourceUsage().maxRSS))'
  return spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(atExit)}`, 'bin/run.js', ...args],
    { encoding: 'utf8', maxBuffer: 1 << 30 },
  )
}

function expectWithinBounds(...args: readonly string[]): void {
  const { status, stderr } = run(...args)
  expect(status === 0 || status === 3, stderr).toBe(true)
  const peakMiB = Number(/peak=(\d+)/.exec(stderr)?.[1]) / 1024
  expect(peakMiB).toBeGreaterThan(20)
  expect(peakMiB).toBeLessThan(mostMiB)
}
