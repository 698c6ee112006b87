import { describe, expect, test } from 'vitest'
import type { CertificateRecord } from '../../src/rotation/certificate-record.ts'
import type { JournalEntry } from '../../src/rotation/journal.ts'
import {
  archiveNames,
  checkNotForRollback,
  checkNotInUse,
  keyPlaces,
  type OldKey,
  retirableKeys,
  whyEncrypted,
} from '../../src/rotation/old-keys.ts'
import { manualRotation } from '../../src/rotation/phase-table.ts'
import { keyRotation } from '../../src/rotation/service-account-key/phase-table.ts'
import {
  type ComponentSnapshot,
  fileKey,
  type Observed,
  type ParsedContent,
} from '../../src/rotation/snapshot.ts'

// Which key is the old one, and which findings show that it is still in use.

const old: OldKey = {
  spki: 'old-key',
  ca: { name: 'cluster', subject: 'CN=kubernetes', digest: 'old' },
}
const record = (digest: string) =>
  ({ digest, subject: 'CN=kubernetes', spki: `${digest}-key` }) as CertificateRecord
const rotation = (newCa: string) =>
  ({
    kind: 'rotation',
    changes: [{ ca: 'cluster', oldCa: record('old'), newCa: record(newCa) }],
  }) as unknown as JournalEntry
const keyRotated = (newKey: string) =>
  ({ kind: 'rotation', changes: [], key: { oldKey: 'old-key', newKey } }) as unknown as JournalEntry
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

describe('the old keys of a journal', () => {
  test('are those of a finished rotation', () => {
    expect(retirableKeys([rotation('new'), phase(12, 'completed')], manualRotation)).toEqual([old])
    expect(retirableKeys([keyRotated('new-key'), phase(8, 'completed')], keyRotation)).toEqual([
      { spki: 'old-key' },
    ])
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
      { message: 'the key of the old cluster CA is also the new key' },
    ],
  ])('are refused: %s', (_, history, expected) => {
    expect(thrown(() => retirableKeys(history, manualRotation))).toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      ...expected,
      why: expect.stringMatching(/.{10}/),
    })
  })

  test.each<[JournalEntry[], object]>([
    [[], { message: 'no journal of a finished rotation', next: 'kcert rotate-sa-key status' }],
    [
      [keyRotated('new-key'), phase(7, 'completed')],
      { message: 'the rotation is not finished', next: 'kcert rotate-sa-key' },
    ],
    [
      [keyRotated('old-key'), phase(8, 'completed')],
      { message: 'the old service account key is also the new key', next: 'kcert rotate-sa-key --phase 1' },
    ],
  ])('are refused with the command of the service account key: case %#', (history, expected) => {
    expect(thrown(() => retirableKeys(history, keyRotation))).toMatchObject(expected)
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
    expect(thrown(() => checkNotInUse(cluster(flags, files), [old], manualRotation))).toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      message: `the key of the old cluster CA is in use: cp1/other reads ${path}`,
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
    expect(() => checkNotInUse(cluster(flags, files), [old], manualRotation)).not.toThrow()
  })

  test.each<[string, InUse['files']]>([
    ['was read', new Map()],
    ['contains a certificate', cluster({}, { '/pki/ca.crt': { kind: 'other' } }).files],
    ['names a certificate that was read', cluster({}, { '/pki/ca.crt': certificates('unread') }).files],
  ])('cannot be excluded when no CA file %s', (_, files) => {
    expect(thrown(() => checkNotInUse({ ...cluster({}, {}), files }, [old], manualRotation))).toMatchObject({
      code: 'KCERT_NODE_UNREACHABLE',
      message: "no API server's CA could be read",
      why: expect.stringMatching(/.{10}/),
      next: expect.stringMatching(/.{10}/),
    })
  })
})

describe('a service account key in use', () => {
  const signing = { 'service-account-signing-key-file': '/sa.key', 'service-account-key-file': '/sa.pub' }
  const newKeys: Record<string, ParsedContent> = {
    '/sa.key': { kind: 'key', spki: 'new-key' },
    '/sa.pub': { kind: 'public-keys', keys: ['new-key'] },
  }
  const clusterWith = (files: Record<string, ParsedContent>, others: Record<string, string> = {}): InUse => {
    const observed = cluster(others, { ...newKeys, ...files })
    return { ...observed, components: [component('cp1', 'kube-apiserver', signing), ...observed.components] }
  }
  const oldKey: OldKey = { spki: 'old-key' }

  test('is none once every file has only the new one', () => {
    expect(() => checkNotInUse(clusterWith({}), [oldKey], keyRotation)).not.toThrow()
  })

  test.each<[string, Record<string, ParsedContent>, Record<string, string>, string]>([
    [
      'verifies tokens',
      { '/sa.pub': { kind: 'public-keys', keys: ['new-key', 'old-key'] } },
      {},
      'cp1/kube-apiserver reads /sa.pub',
    ],
    ['signs tokens', { '/sa.key': { kind: 'key', spki: 'old-key' } }, {}, 'cp1/kube-apiserver reads /sa.key'],
    [
      'is a key of a CA too',
      { '/a.crt': certificates('old') },
      { 'client-ca-file': '/a.crt' },
      'cp1/other reads /a.crt',
    ],
  ])('%s: refused', (_, files, others, where) => {
    expect(thrown(() => checkNotInUse(clusterWith(files, others), [oldKey], keyRotation))).toMatchObject({
      code: 'KCERT_ROTATION_REFUSED',
      message: `the old service account key is in use: ${where}`,
      next: 'kcert rotate-sa-key status',
    })
  })

  test.each<[string, InUse, string]>([
    [
      'a file that was not understood',
      clusterWith({ '/sa.pub': { kind: 'other' } }),
      'cp1/kube-apiserver reads /sa.pub, which could not be read',
    ],
    ['no API server', cluster({}, newKeys), "no API server's service account key could be read"],
  ])('cannot be excluded with %s', (_, observed, message) => {
    expect(thrown(() => checkNotInUse(observed, [oldKey], keyRotation))).toMatchObject({
      code: 'KCERT_NODE_UNREACHABLE',
      message,
    })
  })
})

test('a copy that the rollback of a later rotation needs is kept', () => {
  const path = '/var/lib/kcert/copies/by-digest/abc'
  const copies = (node: string, digest: string) =>
    ({ copies: [{ phase: 1, node, of: { path: '/sa.key' }, digest }] }) as unknown as Observed<'copies'>
  expect(
    thrown(() => checkNotForRollback(copies('cp1', 'abc'), [{ node: 'cp1', path }], keyRotation)),
  ).toMatchObject({
    code: 'KCERT_ROTATION_REFUSED',
    message: `a rollback needs the key in cp1:${path}`,
    next: 'kcert rotate-sa-key status',
  })
  for (const other of [copies('cp2', 'abc'), copies('cp1', 'def')])
    expect(() => checkNotForRollback(other, [{ node: 'cp1', path }], keyRotation)).not.toThrow()
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
  const named = { name: ca, subject: 'CN=kubernetes', digest: 'old' }
  expect(archiveNames({ ca: named, spki: '0123456789abcdef' })).toEqual({
    key: `${name}.key`,
    certificate: `${name}.crt`,
  })
})

test('the archive name of the service account key', () => {
  expect(archiveNames({ spki: '0123456789abcdef' }).key).toBe('sa-old-0123456789ab.key')
})
