import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { inspect } from '../../test/pki/inspected.ts'
import {
  certificatePem,
  controlPlaneTree,
  keyPem,
  signedBy,
  testCa,
  testKey,
} from '../../test/pki/kubeadm-tree.ts'
import { createRequest } from '../x509/issuing.ts'
import { writePem } from '../x509/pem.ts'
import type { InspectionReport } from './report.ts'
import '../../test/seeded.ts'

// Bad input of any kind gives a report, never an exception, and never a "kcert failed". The limits of each reader (documents.ts,
// der.ts) bound the time, so it is not measured here. An endless case would stop the suite.

const now = new Date('2026-11-21T09:00:00Z')
const notBefore = new Date('2026-06-01T08:00:00Z')
const notAfter = new Date('2027-06-01T08:00:00Z')
const ca = testCa('kubernetes', testKey('ca'), notBefore)
const key = testKey('leaf')
const leaf = signedBy(ca, {
  commonName: 'x',
  key,
  notBefore,
  notAfter,
  subjectAltNames: { dns: ['a'], ip: ['10.0.0.1'] },
})
const base64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64')

const secret = `apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ndata:\n  tls.crt: ${base64(certificatePem(leaf, ca.certificate))}\n  tls.key: ${base64(keyPem(key))}\n`
const request = createRequest({ subject: { commonName: 'x' } }, key)
const seeds: readonly Uint8Array[] = [
  controlPlaneTree({ madeAt: notBefore }).files.get('/etc/kubernetes/admin.conf')!.bytes,
  Buffer.from(secret),
  Buffer.from(
    JSON.stringify({
      kind: 'List',
      items: [
        {
          kind: 'ConfigMap',
          metadata: { name: 'kube-root-ca.crt' },
          data: { 'ca.crt': certificatePem(ca.certificate) },
        },
        {
          kind: 'CertificateSigningRequest',
          metadata: { name: 'c' },
          spec: { request: base64(writePem('CERTIFICATE REQUEST', request)) },
        },
      ],
    }),
  ),
  Buffer.from(certificatePem(leaf, ca.certificate) + keyPem(key)),
  Buffer.from(base64(certificatePem(leaf))),
  leaf,
  request,
  key.export({ format: 'der', type: 'pkcs8' }),
  Buffer.from(key.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' }) as string),
]

async function answer(bytes: Uint8Array, root?: string): Promise<InspectionReport> {
  const { report } = await inspect(
    now,
    [{ name: 'f', bytes, file: { path: '/f', mode: 0o600 }, ...(root !== undefined && { root }) }],
    { password: 'x' },
  )
  JSON.stringify(report)
  expect(report.problems.filter(({ code }) => code === 'KCERT_DEFECT')).toEqual([])
  return report
}

const edit = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  remove: fc.nat(8),
  insert: fc.oneof(
    fc.uint8Array({ maxLength: 4 }),
    fc
      .constantFrom(
        '\n',
        ': ',
        '- ',
        '  ',
        '&a ',
        '*a',
        '|',
        '>',
        '"',
        '{',
        '[',
        '---\n',
        '-----BEGIN CERTIFICATE-----\n',
        '-----END CERTIFICATE-----\n',
        'null',
        '\0',
        '\ufeff',
        '\u202e',
      )
      .map((text) => Buffer.from(text)),
  ),
})

function edited(
  seed: Uint8Array,
  edits: readonly { at: number; remove: number; insert: Uint8Array }[],
): Uint8Array {
  return edits.reduce<Buffer>((bytes, { at, remove, insert }) => {
    const offset = Math.floor(at * bytes.length)
    return Buffer.concat([bytes.subarray(0, offset), insert, bytes.subarray(offset + remove)])
  }, Buffer.from(seed))
}

describe('returns a report for any source', () => {
  test.each(seeds.map((seed, index) => [index, seed] as const))(
    'input %d with some bytes changed',
    async (_index, seed) => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(edit, { minLength: 1, maxLength: 6 }),
          fc.boolean(),
          async (edits, isWalked) => {
            await answer(edited(seed, edits), isWalked ? '/' : undefined)
          },
        ),
        { numRuns: 300 },
      )
    },
  )

  test('two inputs, cut and joined', async () => {
    const part = fc.tuple(fc.constantFrom(...seeds), fc.double({ min: 0, max: 1, noNaN: true }))
    await fc.assert(
      fc.asyncProperty(part, part, async ([a, cutA], [b, cutB]) => {
        await answer(Buffer.concat([a.subarray(0, cutA * a.length), b.subarray(cutB * b.length)]))
      }),
      { numRuns: 300 },
    )
  })

  test('random bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), async (bytes) => void (await answer(bytes))),
      { numRuns: 500 },
    )
  })

  const many = (text: string, bytes: number) => Buffer.alloc(bytes, text)
  const size = 10 << 20
  test.each<[string, Uint8Array]>([
    ['10 MB of letters on one line', many('a', size)],
    ['10 MB of base64 on one line', many('QUJD', size)],
    ['10 MB of zeros', Buffer.alloc(size)],
    ['10 MB of opening brackets', many('[', size)],
    ['10 MB of quotes', many('"', size)],
    ['10 MB of keys without value', many('users:\n', size)],
    [
      'a kubeconfig with 10 MB on one line',
      Buffer.concat([Buffer.from('users: []\nclusters: '), many('a: ', size)]),
    ],
    [
      'a kubeconfig with a value of 10 MB',
      Buffer.concat([Buffer.from('users: []\nclusters:\n- name: "'), many('a', size), Buffer.from('"\n')]),
    ],
    [
      'a certificate field of 10 MB that is not base64',
      Buffer.concat([
        Buffer.from('clusters:\n- cluster:\n    certificate-authority-data: '),
        many('*', size),
      ]),
    ],
    [
      'a certificate field of 10 MB that is base64',
      Buffer.concat([
        Buffer.from('clusters:\n- cluster:\n    certificate-authority-data: '),
        many('QUJD', size),
      ]),
    ],
    ['lists in lists', many('- ', 200_000)],
    [
      'a Secret of opening brackets',
      Buffer.concat([Buffer.from('kind: Secret\ndata: '), many('{a: ', 150_000)]),
    ],
    ['BEGIN lines without end', many('-----BEGIN CERTIFICATE-----\n', size)],
    ['a DER of lengths', many('\x30\x80', 1 << 20)],
    ['a DER of sequences', many('\x30\x03', 1 << 20)],
    ['a DER that promises 4 GiB', Buffer.from([0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0x30])],
    ['the same certificate 5,000 times', Buffer.from(certificatePem(ca.certificate).repeat(5000))],
    [
      'base64 of base64 of base64',
      Buffer.from(base64(base64(base64(base64(base64(base64(certificatePem(leaf)))))))),
    ],
  ])('%s', async (_name, bytes) => {
    const report = await answer(bytes)
    const { problems, certificates, withoutCertificate } = report
    expect(problems.length + certificates.length + withoutCertificate.length).toBeGreaterThan(0)
  })

  test('aliases that would grow to billions', async () => {
    const levels = Array.from(
      { length: 12 },
      (_, n) => `a${n}: &a${n} [${`${n === 0 ? 'x' : `*a${n - 1}`}, `.repeat(9)}y]`,
    )
    const report = await answer(Buffer.from(`kind: List\n${levels.join('\n')}\nitems: *a11\n`))
    expect(report.problems).toMatchObject([
      { code: 'DOCUMENT_MALFORMED', message: expect.stringContaining('aliases') },
    ])
  })

  test('one certificate at 5,000 places of a kubeconfig, through aliases', async () => {
    const text = `clusters:\n- &c\n  name: k\n  cluster: {certificate-authority-data: ${base64(certificatePem(ca.certificate))}}\n${'- *c\n'.repeat(5000)}users: []\n`
    await answer(Buffer.from(text))
  })

  test('5,000 CAs of one name with a leaf: tries no more candidates than legitimate inputs have', async () => {
    const cas = Array.from(
      { length: 200 },
      (_, n) => testCa('same', key, new Date(notBefore.getTime() + n * 1000)).certificate,
    )
    const copies = Buffer.from(certificatePem(...cas).repeat(5))
    const stranger = certificatePem(
      signedBy({ ...ca, commonName: 'same' }, { commonName: 'x', key, notBefore, notAfter }),
    )
    const { report } = await inspect(now, [
      { name: 'a', bytes: copies },
      { name: 'b', bytes: Buffer.from(stranger) },
    ])
    expect(report.certificates.at(-1)!.issuerFound).toBeUndefined()
  })
})
