import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { certificatePem, testCa, testKey } from '../../../test/pki/kubeadm-tree.ts'
import { readCertificates } from '../../x509/certificate.ts'
import { certificateRecord } from '../certificate-record.ts'
import { readCaText, type Step, spliced } from './ca-text.ts'
import { hiddenIn } from './secret-lines.ts'
import { hunksOf, unifiedDiff } from './unified-diff.ts'

const since = new Date('2026-01-01T00:00:00Z')
const pemOf = (name: string): string =>
  certificatePem(testCa(name, testKey(`sources ${name}`), since).certificate)
const [oldPem, newPem, otherPem] = [pemOf('kubernetes'), pemOf('kubernetes-ca-2'), pemOf('other')]
const recordOf = (pem: string) => readCertificates(pem).map((one) => certificateRecord(one))[0]!
const [oldCa, newCa] = [recordOf(oldPem), recordOf(newPem)]
const cas = [{ ca: 'cluster', oldCa, newCa, newPem }] as const
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const indented = (text: string, by: string): string => text.trimEnd().replace(/^/gm, by)

function edited(text: string, step: Step): string {
  return spliced(text, readCaText(text, cas, step).splices)
}

const forms: readonly (readonly [string, (pem: string) => string])[] = [
  ['PEM in a literal block', (pem) => `data:\n  # keep\n  ca.crt: |\n${indented(pem, '    ')}\n  other: x\n`],
  ['PEM with CRLF', (pem) => `ca: |\r\n${indented(pem, '  ').replaceAll('\n', '\r\n')}\r\n`],
  ['PEM in a JSON string', (pem) => `${JSON.stringify({ 'ca.crt': pem }, null, 2)}\n`],
  ['PEM in JSON in a JSON string', (pem) => JSON.stringify({ applied: JSON.stringify({ 'ca.crt': pem }) })],
  ['base64', (pem) => `caBundle: "${base64(pem)}" # keep\n`],
  ['base64 in a template', (pem) => `{{- if .Values.on }}\ncaBundle: ${base64(pem)}\n{{- end }}\n`],
]

test.each(forms)('%s: overlap has both CAs with the old CA first, final only the new one', (_, write) => {
  const both = edited(write(oldPem), 'overlap')
  expect(both).toBe(write(oldPem + newPem))
  expect(edited(both, 'overlap')).toBe(both)
  expect(edited(both, 'final')).toBe(write(newPem))
  expect(edited(write(oldPem), 'final')).toBe(write(newPem))
  expect(readCaText(write(newPem + otherPem), cas, 'final').places).toEqual([])
})

test('keeps another CA of the bundle', () => {
  const [, write] = forms[0]!
  expect(edited(write(otherPem + oldPem), 'final')).toBe(write(otherPem + newPem))
  expect(edited(write(newPem + oldPem), 'final')).toBe(write(newPem))
})

test('a base64 value with a private key is found and never edited', () => {
  const kubeconfig = `certificate-authority-data: ${base64(oldPem)}\nclient-key-data: ${base64('x'.repeat(400))}\n`
  const { places, splices, shown } = readCaText(`value: ${base64(kubeconfig)}\n`, cas, 'overlap')
  expect(places).toMatchObject([{ ca: 'cluster', byHand: expect.stringContaining('private key') }])
  expect([splices, shown]).toEqual([[], []])
})

test('replaces the CA cert hash of the old CA only in the final step', () => {
  const text = `caCertHashes: ["sha256:${oldCa.spki}"]\n`
  expect(edited(text, 'overlap')).toBe(text)
  expect(edited(text, 'final')).toBe(`caCertHashes: ["sha256:${newCa.spki}"]\n`)
})

test('reads hostile text in linear time', () => {
  const texts = [
    'A'.repeat(299).concat(' ').repeat(20_000),
    '-----BEGIN CERTIFICATE-----\n'.repeat(200_000),
    '-'.repeat(5_000_000),
  ]
  for (const text of texts) {
    const start = performance.now()
    expect(readCaText(text, cas, 'final').places).toEqual([])
    expect(performance.now() - start).toBeLessThan(5_000)
  }
})

const secret = (key: string): string =>
  `apiVersion: v1\nkind: Secret\nmetadata:\n  name: c-ca\ndata:\n  tls.crt: ${base64(oldPem)}\n  ${key}\n`

test.each([
  ['a key beside the certificate', secret(`tls.key: ${base64('x'.repeat(60))}`)],
  ['a short value of a Secret', secret('other: aHVudGVyMg==')],
  ['a password beside a caBundle', `password: hunter2\ncaBundle: ${base64(oldPem)}\n`],
  [
    'a private key in PEM',
    `a: |\n  -----BEGIN PRIVATE KEY-----\n  AAAA\n  -----END PRIVATE KEY-----\nca: ${base64(oldPem)}\n`,
  ],
  ['the end of a damaged key', `a: |\n  ${'Q'.repeat(64)}\n  AAAA\nca: ${base64(oldPem)}\n`],
  ['the rest of a long secret', `token: |\n${'  a b\n'.repeat(9)}  c d\nca: ${base64(oldPem)}\n`],
  ['a terminal escape', `note: \u001b[2J\ncaBundle: ${base64(oldPem)}\n`],
])('does not show %s in a diff', (_, text) => {
  const read = readCaText(text, cas, 'overlap')
  const hunks = hunksOf(text, read.splices)
  expect(hunks).toHaveLength(1)
  expect(hunks.map((hunk) => hiddenIn(text, read, hunk))).toEqual([
    expect.stringMatching(/beside it|private key too/),
  ])
})

test('the header of each hunk counts the lines that earlier hunks added', () => {
  const text = `${forms[0]![1](oldPem)}${'line: 1\n'.repeat(20)}caBundle: ${base64(oldPem)}\n`
  const { splices } = readCaText(text, cas, 'overlap')
  const [, second] = unifiedDiff('a.yaml', hunksOf(text, splices)).matchAll(/^@@ -(\d+),\d+ \+(\d+),/gm)
  expect(Number(second?.[2]) - Number(second?.[1])).toBe(newPem.trimEnd().split('\n').length)
})

test.each(['git', 'patch'])('%s applies the diffs of both steps, one after the other', (program) => {
  const folder = mkdtempSync(join(tmpdir(), 'sources-'))
  try {
    const lines = 'line: 1\n'.repeat(20)
    const text = `${forms[0]![1](oldPem)}${lines}caBundle: ${base64(oldPem)}\n${lines}ca: ${base64(oldPem + newPem)}`
    const name = 'two words é.yaml'
    const path = join(folder, name)
    writeFileSync(path, text)
    let now = text
    for (const step of ['overlap', 'final'] as const) {
      const read = readCaText(now, cas, step)
      const hunks = hunksOf(now, read.splices)
      expect(hunks.map((hunk) => hiddenIn(now, read, hunk))).toEqual(hunks.map(() => undefined))
      const [args, input] = [program === 'git' ? ['apply', '-p1'] : ['-p1', '-s'], unifiedDiff(name, hunks)]
      execFileSync(program, args, {
        cwd: folder,
        input,
        env: { ...process.env, GIT_CEILING_DIRECTORIES: tmpdir() },
      })
      now = spliced(now, read.splices)
      expect(readFileSync(path, 'utf8')).toBe(now)
    }
    expect(now).toBe(
      `${forms[0]![1](newPem)}${lines}caBundle: ${base64(newPem)}\n${lines}ca: ${base64(newPem)}`,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
})
