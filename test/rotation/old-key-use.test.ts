import { describe, expect, test } from 'vitest'
import type { CertificateRecord } from '../../src/rotation/certificate-record.ts'
import type { JournalEntry } from '../../src/rotation/journal.ts'
import {
  archiveNames,
  checkNotInUse,
  keyPlaces,
  type OldCa,
  oldCasOf,
  whyEncrypted,
} from '../../src/rotation/old-keys.ts'
import { manualRotation } from '../../src/rotation/phase-table.ts'
import { type ComponentSnapshot, fileKey, type ParsedContent } from '../../src/rotation/snapshot.ts'

// Which key is the old one, and which findings show that it is still in use.

const old: OldCa = { ca: 'cluster', subject: 'CN=kubernetes', digest: 'old', spki: 'old-key' }
const record = (digest: string) =>
  ({ digest, subject: 'CN=kubernetes', spki: `${digest}-key` }) as CertificateRecord
const rotation = (newCa: string) =>
  ({
    kind: 'rotation',
    changes: [{ ca: 'cluster', oldCa: record('old'), newCa: record(newCa) }],
  }) as unknown as JournalEntry
const phase = (number: number, event: 'completed' | 'started') =>
  ({ kind: 'phase', phase: number, event }) as unknown as JournalEntry

function thrown(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

describe('the old CAs of a journal', () => {
  test('are those of a finished rotation', () => {
    expect(oldCasOf([rotation('new'), phase(12, 'completed')], manualRotation)).toEqual([old])
  })

  test.each<[string, JournalEntry[], object]>([
    [
      'no journal',
      [],
      {
        message: 'no journal of a finished rotation',
        next: 'kcert rotate-ca status',
      },
    ],
    [
      'phase 12 has started',
      [rotation('new'), phase(12, 'started')],
      {
        message: 'the rotation is not finished',
        next: 'kcert rotate-ca',
      },
    ],
    [
      'phase 11 is the last',
      [rotation('new'), phase(11, 'completed')],
      { message: 'the rotation is not finished' },
    ],
    ['no CA is named', [phase(12, 'completed')], { message: 'the rotation is not finished' }],
    [
      'the new CA has the same key',
      [rotation('old'), phase(12, 'completed')],
      { message: 'the new cluster CA has the key of the old one' },
    ],
  ])('are refused: %s', (_, history, expected) => {
    expect(thrown(() => oldCasOf(history, manualRotation))).toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      ...expected,
      why: expect.stringMatching(/.{10}/),
    })
  })
})

const component = (node: string, name: string, flags: Record<string, string>) =>
  ({ id: `${node}/${name}`, node, name, flags }) as unknown as ComponentSnapshot

type InUse = Parameters<typeof checkNotInUse>[0]

function cluster(flags: Record<string, string>, files: Record<string, ParsedContent>): InUse {
  return {
    atMs: 0,
    certificates: new Map(['old', 'new'].map((digest) => [digest, record(digest)])),
    components: [
      component('cp1', 'kube-apiserver', { 'client-ca-file': '/pki/ca.crt' }),
      component('cp1', 'other', flags),
    ],
    files: new Map(
      Object.entries({ '/pki/ca.crt': certificates('new'), ...files }).map(([path, contains]) => [
        fileKey('cp1', path),
        { node: 'cp1', path, digest: '', mode: 0, changedAtMs: 0, contains },
      ]),
    ),
  }
}

function certificates(...digests: string[]): ParsedContent {
  return { kind: 'certificates', certificates: digests }
}

describe('a key in use', () => {
  const oldKey: ParsedContent = { kind: 'key', spki: 'old-key' }

  test.each<[string, Record<string, string>, Record<string, ParsedContent>, string]>([
    [
      'trusted for clients',
      { 'client-ca-file': '/a.crt' },
      { '/a.crt': certificates('new', 'old') },
      '/a.crt',
    ],
    [
      'trusted for front proxies',
      { 'requestheader-client-ca-file': '/a.crt' },
      { '/a.crt': certificates('old') },
      '/a.crt',
    ],
    ['published', { 'root-ca-file': '/a.crt' }, { '/a.crt': certificates('old') }, '/a.crt'],
    ['signing', { 'cluster-signing-cert-file': '/a.crt' }, { '/a.crt': certificates('old') }, '/a.crt'],
    ['signing, by its key', { 'cluster-signing-key-file': '/a.key' }, { '/a.key': oldKey }, '/a.key'],
    ['next to a trusted CA', { 'client-ca-file': '/a.crt' }, { '/a.key': oldKey }, '/a.key'],
    ['next to a PEM bundle', { 'root-ca-file': '/a.pem' }, { '/a-key.pem': oldKey }, '/a-key.pem'],
    [
      'in a pair, by its key',
      { 'root-ca-file': '/a' },
      { '/a': { kind: 'pair', certificates: [], spki: 'old-key' } },
      '/a',
    ],
    [
      'in a pair, by its certificate',
      { 'root-ca-file': '/a' },
      { '/a': { kind: 'pair', certificates: ['old'], spki: 'x' } },
      '/a',
    ],
  ])('%s is refused', (_, flags, files, path) => {
    expect(thrown(() => checkNotInUse(cluster(flags, files), [old]))).toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      message: `the old key of the cluster CA is in use: cp1/other reads ${path}`,
      why: expect.stringMatching(/.{10}/),
      next: expect.stringMatching(/.{10}/),
    })
  })

  test.each<[string, Record<string, string>, Record<string, ParsedContent>]>([
    ['no flag names', {}, { '/a.crt': certificates('old'), '/a.key': oldKey }],
    ['another flag names', { 'tls-cert-file': '/a.crt' }, { '/a.crt': certificates('old') }],
    ['a kubeconfig has', { 'root-ca-file': '/a' }, { '/a': { kind: 'kubeconfig', caData: ['old'] } }],
    ['an unread certificate may have', { 'root-ca-file': '/a' }, { '/a': certificates('unread') }],
  ])('a key that %s is accepted', (_, flags, files) => {
    expect(() => checkNotInUse(cluster(flags, files), [old])).not.toThrow()
  })

  test.each<[string, InUse['files']]>([
    ['was read', new Map()],
    ['contains a certificate', cluster({}, { '/pki/ca.crt': { kind: 'other' } }).files],
    ['names a certificate that was read', cluster({}, { '/pki/ca.crt': certificates('unread') }).files],
  ])('cannot be excluded when no CA file %s', (_, files) => {
    expect(thrown(() => checkNotInUse({ ...cluster({}, {}), files }, [old]))).toMatchObject({
      code: 'KCERT_NODE_UNREACHABLE',
      message: "no API server's CA could be read",
      why: expect.stringMatching(/.{10}/),
      next: expect.stringMatching(/.{10}/),
    })
  })
})

test('searches for keys in the own folders and next to the CAs of components and kubelets, each path once', () => {
  const observed = {
    ...cluster({ 'root-ca-file': '/pki/ca.crt', 'cluster-signing-key-file': '/sign.key' }, {}),
    kubelets: [
      { node: 'cp1', clientCaFile: '/kubelet/ca.crt' },
      { node: 'w1', clientCaFile: '/kubelet/w1.pem' },
    ],
  } as unknown as Parameters<typeof keyPlaces>[0]
  expect(keyPlaces(observed, 'cp1')).toEqual({
    folders: ['/var/lib/kcert', '/pki/kcert'],
    besideCas: ['/pki/ca.key', '/sign.key', '/kubelet/ca.key'],
  })
  expect(keyPlaces(observed, 'w1')).toEqual({
    folders: ['/var/lib/kcert'],
    besideCas: ['/kubelet/w1-key.pem'],
  })
})

test('does not search next to an API server on a worker with another component', () => {
  const observed = {
    ...cluster({}, {}),
    components: [component('w1', 'kube-proxy', {})],
    kubelets: [],
  } as unknown as Parameters<typeof keyPlaces>[0]
  expect(keyPlaces(observed, 'w1')).toEqual({ folders: ['/var/lib/kcert'], besideCas: [] })
})

test('skips an encrypted key, and prints the commands that identify it, quoted for the shell', () => {
  const { why, next } = whyEncrypted('/a b.key', [old, { ...old, spki: 'fp-key' }])
  expect(why).toContain('encrypted')
  expect(next).toContain("openssl pkey -in '/a b.key'")
  expect(why).toContain('if it prints old-key or fp-key,')
  expect(why).toContain("shred -u '/a b.key'")
})

test.each([
  ['cluster', 'ca-old-0123456789ab'],
  ['front-proxy', 'front-proxy-ca-old-0123456789ab'],
])('the archive names of the %s CA', (ca, name) => {
  expect(archiveNames({ ...old, ca, spki: '0123456789abcdef' })).toEqual({
    key: `${name}.key`,
    certificate: `${name}.crt`,
  })
})
