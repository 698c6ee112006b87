import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { certificatePem, keyPem, signedBy, testCa, testKey } from '../../test/pki/kubeadm-tree.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Content, WriteFile } from '../rotation/action.ts'
import { manualRotation } from '../rotation/phase-table.ts'
import { Certificates } from '../site/certificates.ts'
import { FileReading } from '../site/file-reading.ts'
import { Certificate, readCertificates } from '../x509/certificate.ts'
import { readPrivateKeyFile } from '../x509/keys.ts'
import { verifySignature } from '../x509/signature.ts'
import { FileWriting } from './file-writing.ts'

// These tests write nothing to disk: the node keeps its files in memory and records its calls.

const begun = new Date('2026-11-01T00:00:00Z')
const now = new Date('2026-11-21T12:00:00Z')
const names = ['old', 'new', 'front-proxy old', 'front-proxy new'] as const
const testCas = Object.fromEntries(
  names.map((name) => [name, testCa(`kubernetes ${name}`, testKey(`writing ${name}`), begun)]),
) as Record<(typeof names)[number], ReturnType<typeof testCa>>
const [oldCa, newCa] = [testCas.old, testCas.new].map(({ certificate }) => Certificate.parse(certificate))
const leafKey = testKey('writing leaf')
const leafBy = (ca: keyof typeof testCas) =>
  Certificate.parse(
    signedBy(testCas[ca], {
      commonName: 'system:admin',
      organization: ['system:masters'],
      key: leafKey,
      notBefore: begun,
      notAfter: new Date('2027-11-01T00:00:00Z'),
      extendedKeyUsage: ['clientAuth'],
    }),
  )
const leaf = leafBy('old')
const known = new Map([oldCa!, newCa!].map((one) => [one.fingerprintSha256, one]))
const pemOf = (...certificates: readonly Certificate[]): string =>
  certificates.map(({ der }) => certificatePem(der)).join('')
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const digest = (content: string): string => createHash('sha256').update(content).digest('hex')

type Stored = string | { readonly linkTarget: string } | { readonly found: string; readonly reason?: string }
type Call = readonly [what: string, ...rest: unknown[]]

const timeoutMs = 60_000

interface Scene {
  readonly files?: Readonly<Record<string, Stored>>
  /** Thrown by every call that makes a change. */
  readonly failure?: Error
  /** Certificates from files that were read elsewhere. */
  readonly alsoKnown?: readonly Certificate[]
}

function writing({ files = {}, failure, alsoKnown = [] }: Scene) {
  const stored = new Map(Object.entries(files))
  const certificates = new Certificates()
  const calls: Call[] = []
  const read = (path: string) => {
    const file = stored.get(path)
    if (file === undefined) return { path, found: 'absent' }
    if (typeof file !== 'string')
      return 'found' in file ? { path, ...file } : { path, found: 'absent', ...file }
    return { path, found: 'file', content: Buffer.from(file), sha256: digest(file) }
  }
  const change =
    (what: string) =>
    async (...given: unknown[]): Promise<void> => {
      calls.push([what, ...given])
      if (failure !== undefined) throw failure
    }
  const node = {
    name: 'cp1',
    readFiles: async (paths: readonly string[]) => paths.filter((path) => path !== '/none').map(read),
    makeFolder: async (...given: unknown[]) => void calls.push(['makeFolder', ...given]),
    removeFolder: async (...given: unknown[]) => {
      calls.push(['removeFolder', ...given])
      throw new Error('not empty')
    },
    writeFile: change('writeFile'),
    copyFile: change('copyFile'),
    linkFile: change('linkFile'),
    removeFile: change('removeFile'),
  }
  for (const one of alsoKnown) certificates.add(one)
  const copy =
    (what: string) =>
    async (...given: unknown[]): Promise<void> =>
      void calls.push([what, ...given])
  const cas = {
    pair: async (ca: string, generation: 'old' | 'new') => {
      const { certificate, key } =
        testCas[ca === 'cluster' ? generation : (`front-proxy ${generation}` as const)]
      return { certificate: Certificate.parse(certificate), key }
    },
    // The only source of a leaf certificate is the file that contains it.
    certificate: async (wanted: string) => known.get(wanted) ?? certificates.get(wanted)!,
    issuing: () => ({ now, serialNumber: '0abc' }),
  }
  const one = new FileWriting({
    site: { reading: new FileReading(certificates) } as never,
    planes: { node: () => node } as never,
    keys: undefined as never,
    table: manualRotation,
    copies: { putAside: copy('putAside'), keepFiles: copy('keepFiles'), keepFile: copy('keepFile') } as never,
    cas: cas as never,
    requests: { request: async (...given: unknown[]) => JSON.stringify(given) } as never,
  })
  const write = (path: string, content: Content, more: Partial<WriteFile> = {}) => {
    const file = stored.get(path)
    const replaces = typeof file === 'string' ? digest(file) : 'absent'
    return one.write({
      kind: 'write-file',
      phase: 9,
      node: 'cp1',
      path,
      replaces,
      content,
      mode: 0o640,
      ...more,
    })
  }
  /** The written content, by path. */
  const texts = (): Record<string, string> =>
    Object.fromEntries(
      calls.flatMap(([what, path, text, options]) => {
        if (what !== 'writeFile') return []
        const { key } = options as { key?: { path: string; content: string } }
        return [...(key === undefined ? [] : [[key.path, key.content]]), [path, text]]
      }),
    )
  return { write, calls, texts }
}

const bundle = {
  kind: 'certificates',
  certificates: [oldCa!.fingerprintSha256, newCa!.fingerprintSha256],
} as const
const both = pemOf(oldCa!, newCa!)
const pki = '/etc/kubernetes/pki'

test('keeps copies and renames their index on request', async () => {
  const { write, calls } = writing({})
  const of = [{ path: '/a' }]
  await write('/none', { kind: 'copies', of })
  await write('/none', { kind: 'copies-over' })
  expect(calls).toEqual([
    ['keepFiles', 'cp1', of, 9],
    ['putAside', 'cp1'],
  ])
})

test.each([
  ['/none', undefined, 'it is a directory or a device'],
  ['/a', { found: 'unreadable', reason: 'permission denied' }, 'permission denied'],
  ['/a', { found: 'folder' }, 'it is a directory or a device'],
  ['/a', { found: 'special' }, 'it is a directory or a device'],
])('refuses to write %s, which is %j', async (path, file, why) => {
  const { write, calls } = writing({ files: file === undefined ? {} : { [path]: file } })
  await expect(write(path, bundle)).rejects.toMatchObject({
    code: 'KCERT_NODE_REFUSED',
    message: `${path} on node "cp1" cannot be read`,
    why,
  })
  expect(calls).toEqual([])
})

test('creates the folder of a new file, and copies a file before replacing it', async () => {
  const fresh = writing({})
  await fresh.write(`${pki}/kcert/ca-bundle.crt`, bundle)
  expect(fresh.calls).toEqual([
    ['keepFile', 'cp1', `${pki}/kcert/ca-bundle.crt`, 9],
    ['makeFolder', `${pki}/kcert`, { mode: 0o755 }],
    ['writeFile', `${pki}/kcert/ca-bundle.crt`, both, { replaces: 'absent', mode: 0o640, timeoutMs }],
  ])
  const old = pemOf(oldCa!)
  const there = writing({ files: { [`${pki}/ca.crt`]: old } })
  await there.write(`${pki}/ca.crt`, bundle)
  expect(there.calls).toEqual([
    ['keepFile', 'cp1', `${pki}/ca.crt`, 9],
    ['writeFile', `${pki}/ca.crt`, both, { replaces: { sha256: digest(old) }, mode: 0o640, timeoutMs }],
  ])
})

const drift = {
  code: 'KCERT_ROTATION_DRIFT',
  message: 'cp1:/a changed since kcert planned',
  why: 'another program or person changed it; check the file first',
  next: 'kcert rotate-ca --phase 9',
}

test('does not change a file that differs from the planned one', async () => {
  for (const files of [{ '/a': 'another' }, {}]) {
    const { write, calls } = writing({ files })
    await expect(write('/a', bundle, { replaces: 'f'.repeat(64) })).rejects.toMatchObject(drift)
    expect(calls).toEqual([])
  }
})

test('does not change a file that changes during the action, and passes on other failures', async () => {
  const failure = new KcertError('KCERT_NODE_FILE_CHANGED', 'changed')
  const link = { linkTarget: '/b' }
  for (const [content, file] of [
    [bundle, pemOf(oldCa!)],
    [{ kind: 'link', to: '/b' }, 'x'],
    [{ kind: 'copy', digest: digest('y') }, 'x'],
    [{ kind: 'nothing' }, 'x'],
    [{ kind: 'nothing' }, link],
  ] as const) {
    const write = (thrown: Error) => writing({ files: { '/a': file }, failure: thrown }).write('/a', content)
    await expect(write(failure)).rejects.toMatchObject({ ...drift, cause: failure })
    const others = [new KcertError('KCERT_UNREACHABLE', 'gone'), new Error('broken')]
    for (const other of others) await expect(write(other)).rejects.toBe(other)
  }
})

test('copies a removed file unless it is in the folder of kcert, which is removed with its last file', async () => {
  const theirs = writing({ files: { [`${pki}/ca.crt`]: 'x' } })
  await theirs.write(`${pki}/ca.crt`, { kind: 'nothing' })
  expect(theirs.calls).toEqual([
    ['keepFile', 'cp1', `${pki}/ca.crt`, 9],
    ['removeFile', `${pki}/ca.crt`, { holds: { sha256: digest('x') }, timeoutMs }],
  ])
  for (const name of ['ca-bundle.crt', 'old/ca.key', 'new/front-proxy-ca.crt', 'front-proxy-ca-bridge.crt']) {
    const path = `${pki}/kcert/${name}`
    const ours = writing({ files: { [path]: 'x' } })
    await ours.write(path, { kind: 'nothing' })
    expect(ours.calls).toEqual([
      ['removeFile', path, { holds: { sha256: digest('x') }, timeoutMs }],
      ['removeFolder', `${pki}/kcert/old`],
      ['removeFolder', `${pki}/kcert/new`],
      ['removeFolder', `${pki}/kcert`],
    ])
  }
  for (const name of [
    'other/ca.crt',
    'old/ca/x',
    'old/x/ca.crt',
    'leaf.crt',
    'old/old/ca.crt',
    'oldca.crt',
  ]) {
    const path = `${pki}/kcert/${name}`
    const others = writing({ files: { [path]: 'x' } })
    await others.write(path, { kind: 'nothing' })
    expect(others.calls.map(([what]) => what)).toEqual(['keepFile', 'removeFile'])
  }
})

test('copies a file in the folder of kcert before replacing it', async () => {
  const path = `${pki}/kcert/ca-bundle.crt`
  const { write, calls } = writing({ files: { [path]: pemOf(oldCa!) } })
  await write(path, bundle)
  expect(calls[0]).toEqual(['keepFile', 'cp1', path, 9])
})

test('removes a dangling link, and does nothing when the path does not exist', async () => {
  const { write, calls } = writing({ files: { '/a': { linkTarget: 'gone' } } })
  await write('/a', { kind: 'nothing' })
  await write('/b', { kind: 'nothing' })
  expect(calls).toEqual([
    ['keepFile', 'cp1', '/a', 9],
    ['removeFile', '/a', { holds: { linkTarget: 'gone' }, timeoutMs }],
    ['keepFile', 'cp1', '/b', 9],
  ])
})

test('creates links and copies on the node', async () => {
  const { write, calls } = writing({ files: { '/f/a': 'x' } })
  await write('/f/a', { kind: 'link', to: 'b' })
  const sha256 = digest('y')
  await write('/f/a', { kind: 'copy', digest: sha256 })
  const replaces = { sha256: digest('x') }
  expect(calls.filter(([what]) => what !== 'keepFile')).toEqual([
    ['linkFile', '/f/a', 'b', { replaces, timeoutMs }],
    ['makeFolder', '/f', { mode: 0o755 }],
    [
      'copyFile',
      `/var/lib/kcert/copies/by-digest/${sha256}`,
      '/f/a',
      { sha256, replaces, mode: 0o640, timeoutMs },
    ],
  ])
})

test('restores a key with its certificate in one call, after copying both', async () => {
  const { write, calls } = writing({ files: { '/f/a.crt': 'x' } })
  const [sha256, ofKey] = [digest('y'), digest('z')]
  const copyOf = (one: string) => `/var/lib/kcert/copies/by-digest/${one}`
  const key = { path: '/f/a.key', replaces: digest('k'), digest: ofKey }
  await write('/f/a.crt', { kind: 'copy', digest: sha256, key })
  expect(calls).toEqual([
    ['keepFile', 'cp1', '/f/a.crt', 9],
    ['keepFile', 'cp1', '/f/a.key', 9],
    ['makeFolder', '/f', { mode: 0o755 }],
    [
      'copyFile',
      copyOf(sha256),
      '/f/a.crt',
      {
        sha256,
        replaces: { sha256: digest('x') },
        mode: 0o640,
        key: { path: '/f/a.key', replaces: { sha256: digest('k') }, from: copyOf(ofKey), sha256: ofKey },
        timeoutMs,
      },
    ],
  ])
})

test.each([
  ['cluster', 'old', testCas.old],
  ['cluster', 'new', testCas.new],
  ['front-proxy', 'new', testCas['front-proxy new']],
] as const)('the key of the %s CA, %s', async (ca, generation, { key }) => {
  const { write, texts } = writing({})
  await write('/a', { kind: 'ca-key', ca, generation })
  expect(texts()['/a']).toBe(keyPem(key))
})

test('writes the certificate that the cluster issued for a kubelet', async () => {
  const { write, texts } = writing({})
  const content = { kind: 'requested', usage: 'client', replaces: 'x' } as const
  await write('/a', content)
  expect(texts()['/a']).toBe(JSON.stringify(['cp1', content]))
})

const keyOf = (text: string): string => readPrivateKeyFile(Buffer.from(text)).publicKey!.sha256
const isOf = (certificate: Certificate, ca: keyof typeof testCas): boolean =>
  verifySignature(certificate, Certificate.parse(testCas[ca].certificate).publicKey).ok
const reissued = {
  kind: 'reissued',
  leaf: leaf.fingerprintSha256,
  ca: 'cluster',
  chain: [newCa!.fingerprintSha256],
} as const

test('reissues a leaf certificate with the same key, followed by its chain', async () => {
  const { write, texts, calls } = writing({ files: { '/a': pemOf(leaf) } })
  await write('/a', reissued)
  const [made, ...chain] = readCertificates(texts()['/a']!)
  expect([made!.subject.text, made!.serialNumber, made!.publicKey.sha256, isOf(made!, 'new')]).toEqual([
    leaf.subject.text,
    '0abc',
    leaf.publicKey.sha256,
    true,
  ])
  expect(chain.map(({ fingerprintSha256 }) => fingerprintSha256)).toEqual(reissued.chain)
  expect(calls).toHaveLength(2)
})

test('with a new key, copies the key first, and writes both in one call', async () => {
  const { write, texts, calls } = writing({ files: { '/a': pemOf(leaf) } })
  await write('/a', { ...reissued, ca: 'front-proxy', newKey: '/a.key' })
  const [made] = readCertificates(texts()['/a']!)
  expect([isOf(made!, 'front-proxy new'), made!.publicKey.sha256]).toEqual([true, keyOf(texts()['/a.key']!)])
  expect(made!.publicKey.sha256).not.toBe(leaf.publicKey.sha256)
  expect(made!.publicKey.curve).toBe('P-256')
  expect(
    calls.map(([what, ...given]) => [what, what === 'writeFile' ? given[0] : given[1], given[2]]),
  ).toEqual([
    ['keepFile', '/a', 9],
    ['keepFile', '/a.key', 9],
    [
      'writeFile',
      '/a',
      {
        replaces: { sha256: digest(pemOf(leaf)) },
        mode: 0o640,
        key: { path: '/a.key', replaces: 'anything', content: texts()['/a.key'] },
        timeoutMs,
      },
    ],
  ])
})

test('with a key type, creates a key of this type, whatever the replaced key was', async () => {
  const { write, texts } = writing({ files: { '/a': pemOf(leaf) } })
  await write('/a', { ...reissued, newKey: '/a.key', keyType: 'ECDSA-P384' })
  const [made] = readCertificates(texts()['/a']!)
  expect([isOf(made!, 'new'), made!.publicKey.curve, made!.publicKey.sha256]).toEqual([
    true,
    'P-384',
    keyOf(texts()['/a.key']!),
  ])
  const { parts } = await written(kubeconfig(), { newKey: true, keyType: 'RSA-2048' })
  expect(parts.key).toMatch(/^-----BEGIN RSA PRIVATE KEY-----/)
  expect(readCertificates(parts.client!)[0]!.publicKey.bits).toBe(2048)
})

interface Parts {
  readonly cluster?: object
  readonly user?: object
  readonly more?: object
}

function kubeconfig({
  cluster = { 'certificate-authority-data': base64(pemOf(oldCa!)) },
  user = { 'client-certificate-data': base64(pemOf(leaf)), 'client-key-data': base64(keyPem(leafKey)) },
  more = {},
}: Parts = {}): string {
  return `${JSON.stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'first', cluster: { server: 'https://first' } },
        { name: 'c', cluster: { server: 'https://a', ...cluster } },
      ],
      users: [
        { name: 'first', user: { token: 't' } },
        { name: 'u', user },
      ],
      contexts: [
        { name: 'first', context: { cluster: 'first', user: 'first' } },
        { name: 'x', context: { cluster: 'c', user: 'u' } },
      ],
      'current-context': 'x',
      ...more,
    },
    null,
    2,
  )}\n`
}

const conf = '/etc/kubernetes/admin.conf'
const caData = bundle.certificates

/** The content of a written kubeconfig. */
function partsOf(text: string) {
  const { clusters, users } = JSON.parse(text) as {
    clusters: { cluster: Record<string, string> }[]
    users: { user: Record<string, string> }[]
  }
  const data = (value: string | undefined) => value && Buffer.from(value, 'base64').toString()
  const { cluster } = clusters.at(-1)!
  const { user } = users.at(-1)!
  return {
    ca: data(cluster['certificate-authority-data']),
    client: data(user['client-certificate-data']),
    key: data(user['client-key-data']),
    first: [clusters[0]!.cluster, users[0]!.user],
    user,
  }
}

async function written(text: string, content: object = {}, files: Scene['files'] = {}) {
  const one = writing({ files: { [conf]: text, ...files }, alsoKnown: [leaf] })
  await one.write(conf, {
    kind: 'kubeconfig',
    caData,
    reissue: leaf.fingerprintSha256,
    ...content,
  } as Content)
  return { ...one, parts: partsOf(one.texts()[conf]!) }
}

test('writes both CAs, and a client certificate of the new CA with the same key, to a kubeconfig', async () => {
  const { parts, calls } = await written(kubeconfig())
  expect(parts.ca).toBe(both)
  const [client] = readCertificates(parts.client!)
  expect([isOf(client!, 'new'), client!.publicKey.sha256]).toEqual([true, leaf.publicKey.sha256])
  expect(parts.key).toBe(keyPem(leafKey))
  expect(parts.first).toEqual([{ server: 'https://first' }, { token: 't' }])
  expect(calls).toHaveLength(2)
})

test('writes a new key to a kubeconfig on request', async () => {
  const { parts } = await written(kubeconfig(), { newKey: true })
  expect(keyOf(parts.key!)).toBe(readCertificates(parts.client!)[0]!.publicKey.sha256)
  expect(keyOf(parts.key!)).not.toBe(leaf.publicKey.sha256)
})

test('changes only the CAs when no certificate is reissued, or when the kubeconfig has no user', async () => {
  const { parts } = await written(kubeconfig(), { reissue: undefined })
  expect([parts.ca, parts.client]).toEqual([both, pemOf(leaf)])
  const nobody = writing({ files: { [conf]: kubeconfig({ more: { users: [] } }) } })
  await nobody.write(conf, { kind: 'kubeconfig', caData, reissue: leaf.fingerprintSha256 })
  expect(JSON.parse(nobody.texts()[conf]!)).toMatchObject({ users: [] })
  const nowhere = writing({ files: { [conf]: kubeconfig({ more: { clusters: [] } }) } })
  await nowhere.write(conf, { kind: 'kubeconfig', caData })
  expect(nowhere.texts()[conf]).toBe(kubeconfig({ more: { clusters: [] } }))
})

test('uses the first context without a current one, and the first cluster and user without contexts', async () => {
  const reverse = kubeconfig({
    more: { 'current-context': undefined, contexts: [{ name: 'y', context: { cluster: 'c', user: 'u' } }] },
  })
  expect((await written(reverse)).parts.ca).toBe(both)
  const lone = kubeconfig({
    more: {
      contexts: [],
      clusters: [{ name: 'c', cluster: { server: 'https://a' } }],
      users: [{ name: 'u', user: { 'client-certificate-data': base64(pemOf(leaf)) } }],
    },
  })
  expect((await written(lone)).parts.ca).toBe(both)
})

test('writes a certificate and key to the files that the kubeconfig references', async () => {
  const user = { 'client-certificate': 'pki/admin.crt', 'client-key': '/keys/admin.key' }
  const { texts, parts, calls } = await written(kubeconfig({ user }), { newKey: true })
  expect(Object.keys(texts())).toEqual(['/keys/admin.key', '/etc/kubernetes/pki/admin.crt', conf])
  const [client] = readCertificates(texts()['/etc/kubernetes/pki/admin.crt']!)
  expect([isOf(client!, 'new'), client!.publicKey.sha256]).toEqual([true, keyOf(texts()['/keys/admin.key']!)])
  expect([parts.user, parts.ca]).toEqual([user, both])
  expect(calls.filter(([what]) => what === 'writeFile').map(([, , , options]) => options)).toEqual([
    {
      replaces: 'anything',
      key: { path: '/keys/admin.key', replaces: 'anything', content: texts()['/keys/admin.key'] },
      timeoutMs,
    },
    { replaces: { sha256: digest(kubeconfig({ user })) }, mode: 0o640, timeoutMs },
  ])
  const order = ['keepFile', 'keepFile', 'keepFile', 'writeFile', 'writeFile']
  expect(calls.map(([what]) => what).filter((what) => order.includes(String(what)))).toEqual(order)
  const kept = await written(kubeconfig({ user }))
  expect(Object.keys(kept.texts())).toEqual(['/etc/kubernetes/pki/admin.crt', conf])
})

test('keeps certificate and key in one file that the kubeconfig references for both', async () => {
  const path = '/etc/kubernetes/admin.pem'
  const user = { 'client-certificate': 'admin.pem', 'client-key': path }
  const file = { [path]: `${pemOf(leaf)}${keyPem(leafKey)}` }
  const kept = await written(kubeconfig({ user }), {}, file)
  expect(Object.keys(kept.texts())).toEqual([path, conf])
  expect(readCertificates(kept.texts()[path]!)[0]!.publicKey.sha256).toBe(leaf.publicKey.sha256)
  expect(keyOf(kept.texts()[path]!)).toBe(leaf.publicKey.sha256)
  const { texts } = await written(kubeconfig({ user }), { newKey: true }, file)
  expect(keyOf(texts()[path]!)).toBe(readCertificates(texts()[path]!)[0]!.publicKey.sha256)
  expect(keyOf(texts()[path]!)).not.toBe(leaf.publicKey.sha256)
  await expect(written(kubeconfig({ user }), {}, { [path]: pemOf(leaf) })).rejects.toMatchObject({
    message: `${path} on node "cp1" has no private key`,
  })
})

test('writes the key in its file together with the kubeconfig that contains its certificate', async () => {
  const user = { 'client-certificate-data': base64(pemOf(leaf)), 'client-key': '/keys/admin.key' }
  const { texts, parts, calls } = await written(kubeconfig({ user }), { newKey: true })
  expect(keyOf(texts()['/keys/admin.key']!)).toBe(readCertificates(parts.client!)[0]!.publicKey.sha256)
  expect(calls.filter(([what]) => what === 'writeFile')).toHaveLength(1)
})

test('does not write to the certificate store of the kubelet when changing its kubeconfig', async () => {
  const store = '/var/lib/kubelet/pki/kubelet-client-current.pem'
  const user = { 'client-certificate': store, 'client-key': store }
  const { texts, parts } = await written(kubeconfig({ user }))
  expect([Object.keys(texts()), parts.user, parts.ca]).toEqual([[conf], user, both])
  const other = { 'client-certificate': `${store}.crt`, 'client-key': '/a.key' }
  expect(Object.keys((await written(kubeconfig({ user: other }))).texts())).toContain(`${store}.crt`)
})

test('keeps a CA file that already contains the CAs, and replaces any other with CA data', async () => {
  const cluster = { 'certificate-authority': 'pki/ca.crt' }
  const path = '/etc/kubernetes/pki/ca.crt'
  const stays = await written(kubeconfig({ cluster }), {}, { [path]: both })
  expect(stays.parts.ca).toBeUndefined()
  const none = await written(kubeconfig({ cluster: { 'certificate-authority': '/none' } }))
  expect(none.parts.ca).toBe(both)
  for (const file of [pemOf(newCa!, oldCa!), pemOf(oldCa!), keyPem(leafKey), undefined]) {
    const gives = await written(kubeconfig({ cluster }), {}, file === undefined ? {} : { [path]: file })
    expect(gives.parts.ca).toBe(both)
  }
})

const pod = (flag: string): string => `apiVersion: v1
kind: Pod
metadata:
  name: own-name
spec:
  containers:
  - name: sidecar
    command:
    - proxy
    - --leader-elect=true
  - name: kube-scheduler
    command:
    - kube-scheduler
    - --leader-elect=${flag}
`
const unit = (flag: string): string => `[Service]
ExecStart=/usr/bin/kube-scheduler --leader-elect=${flag}
`
const leaderElect = { kind: 'definition', flags: { 'leader-elect': 'false' } } as const

test.each([
  ['/etc/kubernetes/manifests/kube-scheduler.yaml', pod],
  ['/etc/kubernetes/manifests/kube-scheduler.yml', pod],
  ['/etc/systemd/system/kube-scheduler.service', unit],
  ['/etc/systemd/system/kube.yaml.service', unit],
  [
    '/etc/systemd/system/kube-scheduler.service.d/10.conf',
    (flag: string) => `[Service]\nExecStart=\nExecStart=/usr/bin/kube-scheduler --leader-elect=${flag}\n`,
  ],
  [
    '/etc/kubernetes/manifests/cloud.yaml',
    (flag: string) => pod(flag).replaceAll('kube-scheduler', 'cloud-controller-manager'),
  ],
  [
    '/etc/systemd/system/kube-scheduler-once.service',
    (flag: string) => `[Service]
Type=oneshot
ExecStart=/usr/bin/prekube
ExecStart=/usr/bin/kube-scheduler --leader-elect=${flag}
`,
  ],
  ['/etc/systemd/system/etcd.service', (flag: string) => unit(flag).replace('kube-scheduler', 'etcd')],
  [
    '/etc/kubernetes/manifests/own.json',
    (flag: string) =>
      `${JSON.stringify(
        {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'own' },
          spec: { containers: [{ name: 'own', command: ['own', `--leader-elect=${flag}`] }] },
        },
        null,
        2,
      )}\n`,
  ],
])('changes flags in the definition %s', async (path, text) => {
  const { write, texts } = writing({ files: { [path]: text('true') } })
  await write(path, leaderElect)
  expect(texts()[path]).toBe(text('false'))
  // An action whose response was lost.
  const again = writing({ files: { [path]: text('false') } })
  await again.write(path, leaderElect, { replaces: digest(text('true')) })
  expect(again.calls).toEqual([])
})

test('sets annotations together with the flags', async () => {
  const { write, texts } = writing({ files: { '/m/a.yaml': pod('true') } })
  await write('/m/a.yaml', { ...leaderElect, annotations: { 'ca-rotation': '1' } })
  expect(texts()['/m/a.yaml']).toMatch(/annotations:\s+ca-rotation: "1"/)
})

test('rejects an empty kubeconfig', async () => {
  await expect(
    writing({ files: { [conf]: '' } }).write(conf, { kind: 'kubeconfig', caData }),
  ).rejects.toMatchObject({
    code: 'KCERT_KUBECONFIG_UNUSABLE',
    message: expect.stringContaining(`cp1:${conf}`),
  })
})

test('rejects a unit file without a command, with its path', async () => {
  await expect(
    writing({ files: { '/a.service': '[Service]\n' } }).write('/a.service', leaderElect),
  ).rejects.toMatchObject({
    code: 'KCERT_EDIT_REFUSED',
    message: expect.stringContaining('/a.service'),
  })
})

test.each([
  ['kubeconfig', { kind: 'kubeconfig', caData }],
  ['definition', leaderElect],
] as const)('a %s that is not there is not made', async (_, content) => {
  await expect(writing({}).write('/a', content)).rejects.toMatchObject(drift)
})

const key = keyPem(testCas.new.key)
const renewed = kubeconfig({
  cluster: { 'certificate-authority-data': base64(both) },
  user: {
    'client-certificate-data': base64(pemOf(leafBy('new'))),
    'client-key-data': base64(keyPem(leafKey)),
  },
})
const caKey = { kind: 'ca-key', ca: 'cluster', generation: 'new' } as const
const renewing = { kind: 'kubeconfig', caData, reissue: leaf.fingerprintSha256 } as const

test.each<[string, Content, Stored | undefined, boolean]>([
  ['a removed file', { kind: 'nothing' }, undefined, true],
  ['a file that must be removed', { kind: 'nothing' }, 'x', false],
  ['the link', { kind: 'link', to: 'b' }, { linkTarget: 'b' }, true],
  ['another link', { kind: 'link', to: 'b' }, { linkTarget: 'c' }, false],
  ['the copy', { kind: 'copy', digest: digest('x') }, 'x', true],
  ['no copy', { kind: 'copy', digest: digest('x') }, undefined, false],
  ['another copy', { kind: 'copy', digest: digest('x') }, 'y', false],
  ['the certificates', bundle, both, true],
  ['other certificates', bundle, pemOf(newCa!), false],
  ['no certificates', bundle, undefined, false],
  ['the key of the CA', caKey, key, true],
  ['another key', caKey, keyPem(leafKey), false],
  ['no key', caKey, 'x', false],
  ['no file of a key', caKey, undefined, false],
  ['the kubeconfig', renewing, renewed, true],
  [
    'the kubeconfig, nothing reissued',
    { kind: 'kubeconfig', caData },
    kubeconfig({ cluster: { 'certificate-authority-data': base64(both) } }),
    true,
  ],
  ['a kubeconfig with other CAs', { kind: 'kubeconfig', caData }, kubeconfig(), false],
  [
    'a kubeconfig with the old client',
    renewing,
    kubeconfig({ cluster: { 'certificate-authority-data': base64(both) } }),
    false,
  ],
  [
    'a kubeconfig without a client',
    renewing,
    kubeconfig({ cluster: { 'certificate-authority-data': base64(both) }, user: { token: 't' } }),
    false,
  ],
  [
    'a kubeconfig without users',
    renewing,
    kubeconfig({ cluster: { 'certificate-authority-data': base64(both) }, more: { users: [] } }),
    false,
  ],
  ['no kubeconfig', renewing, undefined, false],
  ['a leaf of the new CA', reissued, pemOf(leafBy('new')), true],
  [
    'a leaf of the new front-proxy CA',
    { ...reissued, ca: 'front-proxy' },
    pemOf(leafBy('front-proxy new')),
    true,
  ],
  ['a leaf of another new CA', reissued, pemOf(leafBy('front-proxy new')), false],
  ['a leaf of the old CA', reissued, pemOf(leaf), false],
  ['no leaf', reissued, 'x', false],
  ['no file of a leaf', reissued, undefined, false],
  ['another definition', leaderElect, unit('true'), false],
  ['no definition', leaderElect, undefined, false],
  ['a requested certificate', { kind: 'requested', usage: 'client', replaces: 'x' }, pemOf(leaf), false],
])('recognizes a completed action by its file: %s', async (_, content, file, isDone) => {
  const { write, calls } = writing({ files: file === undefined ? {} : { '/a': file } })
  const replaces = 'f'.repeat(64)
  if (isDone) await write('/a', content, { replaces })
  else await expect(write('/a', content, { replaces })).rejects.toMatchObject(drift)
  expect(calls).toEqual([])
})
