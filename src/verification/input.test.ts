import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { craft, spkiOf } from '../../test/fixtures/certificates.ts'
import { client, createCa } from '../../test/scripts/small-pki.ts'
import type { KcertError } from '../errors/kcert-error.ts'
import type { ReadReferencedFile } from '../inspection/source.ts'
import { Certificate } from '../x509/certificate.ts'
import { explicit, integer, oid, sequence, setOf } from '../x509/der-writer.ts'
import { oidOf } from '../x509/oids.ts'
import { writePem } from '../x509/pem.ts'
import { type InputRole, readCertificateInput } from './input.ts'

const ca = createCa('kubernetes')
const otherCa = createCa('other')
const admin = client('admin', ca)
const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64')

const secret = (data: object, metadata: object = { name: 'x' }): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, data })

const noFiles: ReadReferencedFile = (name) => ({ name, reason: 'not-found', detail: 'does not exist' })

async function read(
  content: string | Uint8Array,
  role: InputRole = 'roots',
  readReferencedFile: ReadReferencedFile = noFiles,
  context?: string,
): Promise<{ found: string[]; unreadable: string[]; isKubeconfig: boolean }> {
  const source = { name: 'in', bytes: Buffer.from(content), file: { path: '/home/me/in', mode: 0o600 } }
  const options = { readReferencedFile, context, contextFlag: '--context' }
  const { certificates, unreadable, isKubeconfig } = await readCertificateInput(source, role, options)
  return {
    found: certificates.map(
      ({ entry, certificate }) => `${entry || 'all'}: ${certificate.subject.commonName}`,
    ),
    unreadable: unreadable.map(({ entry, reason }) => `${entry}: ${reason}`),
    isKubeconfig,
  }
}

const refusal = (content: string | Uint8Array, role?: InputRole, context?: string): Promise<KcertError> =>
  read(content, role, noFiles, context).then(
    () => expect.fail('it was read'),
    (error: KcertError) => error,
  )

function kubeconfig(user: string, cluster: string, currentContext = 'x'): string {
  return [
    'apiVersion: v1',
    'kind: Config',
    `current-context: ${currentContext}`,
    'clusters:',
    `- {name: elsewhere, cluster: {certificate-authority-data: ${base64(otherCa.pem)}}}`,
    `- {name: c, cluster: {${cluster}}}`,
    'users:',
    '- {name: nobody, user: {token: t}}',
    `- {name: u, user: {${user}}}`,
    'contexts:',
    '- {name: elsewhere, context: {cluster: elsewhere, user: nobody}}',
    '- {name: x, context: {cluster: c, user: u}}',
    '',
  ].join('\n')
}
const whole = kubeconfig(
  `client-certificate-data: ${base64(admin.pem)}`,
  `certificate-authority-data: ${base64(ca.pem)}`,
)

describe('reads certificates', () => {
  test('from PEM, each with its number, and ignores keys between them', async () => {
    const { found } = await read(`text\n${admin.pem}${admin.keyPem}${ca.pem}`)
    expect(found).toEqual(['certificate 1: admin', 'certificate 2: kubernetes'])
  })

  test('from DER, a single one or concatenated, and from base64 of it', async () => {
    expect((await read(ca.der)).found).toEqual(['all: kubernetes'])
    expect((await read(Buffer.concat([admin.der, ca.der]))).found).toEqual([
      'certificate 1: admin',
      'certificate 2: kubernetes',
    ])
    expect((await read(base64(ca.der))).found).toEqual(['all: kubernetes'])
  })

  test('from a kubeconfig: the CA of its current context as root, the client certificate as leaf', async () => {
    expect(await read(whole)).toEqual({
      found: ['cluster c: certificate-authority-data: kubernetes'],
      unreadable: [],
      isKubeconfig: true,
    })
    expect((await read(whole, 'leaf')).found).toEqual(['user u: client-certificate-data: admin'])
  })

  test('from a bundle in a kubeconfig, each with its number, and from a file that can be named again', async () => {
    const bundle = kubeconfig('', `certificate-authority-data: ${base64(ca.pem + otherCa.pem)}`)
    expect((await read(bundle)).found).toEqual([
      'cluster c: certificate-authority-data #1: kubernetes',
      'cluster c: certificate-authority-data #2: other',
    ])
    const source = { name: 'in', bytes: Buffer.from(ca.pem), file: { path: '/in', mode: 0o600 } }
    expect(await readCertificateInput(source, 'roots', { readReferencedFile: noFiles })).not.toHaveProperty(
      'isNoFile',
    )
  })

  test('from the requested context of a kubeconfig', async () => {
    expect((await read(whole, 'roots', noFiles, 'elsewhere')).found).toEqual([
      'cluster elsewhere: certificate-authority-data: other',
    ])
  })

  test('from a kubeconfig whose key matches its certificate, or is unreadable', async () => {
    for (const key of [`client-key-data: ${base64(admin.keyPem)}`, 'client-key: /nowhere.key', '']) {
      const user = [`client-certificate-data: ${base64(admin.pem)}`, key].filter(Boolean).join(', ')
      expect((await read(kubeconfig(user, ''), 'leaf')).found).toEqual([
        'user u: client-certificate-data: admin',
      ])
    }
  })

  test('from the files that a kubeconfig refers to, relative to its folder', async () => {
    const asked: string[] = []
    const files: ReadReferencedFile = (path) => {
      asked.push(path)
      return { name: path, bytes: Buffer.from(ca.pem) }
    }
    const { found } = await read(kubeconfig('', 'certificate-authority: pki/ca.crt'), 'roots', files)
    expect([found, asked]).toEqual([
      ['cluster c: certificate-authority: kubernetes'],
      ['/home/me/pki/ca.crt'],
    ])
  })

  test('from a TLS Secret: the chain as leaf, ca.crt as root', async () => {
    const web = secret(
      { 'tls.crt': base64(admin.pem + otherCa.pem), 'ca.crt': base64(ca.pem) },
      { name: 'web', namespace: 'd' },
    )
    expect((await read(web, 'leaf')).found).toEqual([
      'Secret d/web data[tls.crt] #1: admin',
      'Secret d/web data[tls.crt] #2: other',
    ])
    expect((await read(web)).found).toEqual(['Secret d/web data[ca.crt]: kubernetes'])
  })

  test.each([
    [
      'a damaged block',
      admin.pem.replace(/M/g, '!'),
      /^in: Secret x data\[tls\.crt\] #1: line 1: CERTIFICATE: /,
    ],
    [
      'a block without a certificate',
      writePem('CERTIFICATE', sequence()),
      /^in: Secret x data\[tls\.crt\] #1: /,
    ],
    [
      'a dash too few before BEGIN',
      admin.pem.slice(1),
      /^in: Secret x data\[tls\.crt\] #1: line \d+: CERTIFICATE: /,
    ],
    [
      'a dash too few behind BEGIN',
      admin.pem.replace('TE-----\n', 'TE----\n'),
      /data\[tls\.crt\] #1: line 1: CERTIFICATE: /,
    ],
  ])('but takes no leaf from a TLS Secret whose first certificate is %s', async (_, damaged, message) => {
    const chain = damaged + ca.pem
    const type = 'kubernetes.io/tls'
    const values = {
      'tls.crt': base64(chain),
      'tls.key': base64(admin.keyPem),
      'other.pem': base64(ca.pem),
    }
    const single = { ...JSON.parse(secret(values)), type }
    const list = {
      apiVersion: 'v1',
      kind: 'List',
      items: [single, JSON.parse(secret({ a: base64(admin.pem) }))],
    }
    for (const object of [single, list])
      expect(await refusal(JSON.stringify(object), 'leaf')).toMatchObject({
        code: 'KCERT_X509_MALFORMED',
        message: expect.stringMatching(message),
      })
    const user = `client-certificate-data: ${base64(chain)}`
    for (const content of [chain, kubeconfig(user, '')])
      expect(await refusal(content, 'leaf')).toMatchObject({ code: 'KCERT_X509_MALFORMED' })
    // Bundles have no leaf: their other members are still read.
    expect((await read(JSON.stringify(single))).found).toContain('Secret x data[tls.crt] #2: kubernetes')
  })

  test.each([
    [
      'after a key',
      { 'a.key': base64(admin.keyPem), 'b.crt': base64(admin.pem.replace(/M/g, '!') + ca.pem) },
    ],
    ['alone in its value', { 'a.crt': base64(admin.pem.replace(/M/g, '!')), 'b.crt': base64(ca.pem) }],
  ])('but takes no leaf from a Secret whose first certificate is damaged, %s', async (_, values) => {
    expect(await refusal(secret(values), 'leaf')).toMatchObject({
      code: 'KCERT_X509_MALFORMED',
      message: expect.stringMatching(/^in: Secret x data\[[ab]\.crt\]( #1)?: line 1: CERTIFICATE: /),
    })
  })

  test('from a TLS Secret: only the chain in tls.crt is the leaf', async () => {
    const values = { 'a.pem': base64(otherCa.pem), 'tls.crt': base64(admin.pem) }
    const object = { ...JSON.parse(secret(values)), type: 'kubernetes.io/tls' }
    expect((await read(JSON.stringify(object), 'leaf')).found).toEqual(['Secret x data[tls.crt]: admin'])
  })

  test('from any value of another Secret, and from an issued request, as leaf', async () => {
    const object = { ...JSON.parse(secret({ 'web.pem': base64(admin.pem) })), type: 'Opaque' }
    expect((await read(JSON.stringify(object), 'leaf')).found).toEqual(['Secret x data[web.pem]: admin'])
    const request = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: 'r' },
      status: { certificate: base64(admin.pem) },
    }
    expect((await read(JSON.stringify(request), 'leaf')).found).toEqual([
      'CertificateSigningRequest r status.certificate: admin',
    ])
  })

  test('from a leaf whose other certificates are damaged, and names these', async () => {
    const { found, unreadable } = await read(admin.pem + ca.pem.replace(/M/g, '!'), 'leaf')
    expect(found).toEqual(['certificate 1: admin'])
    expect(unreadable).toEqual([expect.stringMatching(/^certificate 2: line \d+: /)])
  })

  test('but takes no leaf from another value of a TLS Secret without a certificate in tls.crt', async () => {
    const object = {
      ...JSON.parse(secret({ 'tls.crt': '', 'other.pem': base64(ca.pem) })),
      type: 'kubernetes.io/tls',
    }
    expect(await refusal(JSON.stringify(object), 'leaf')).toMatchObject({ code: 'KCERT_USAGE' })
  })

  test('from a TLS Secret that is named ca.crt, without treating its chain as a CA', async () => {
    const named = secret({ 'tls.crt': base64(admin.pem) }, { name: 'ca.crt' })
    expect((await read(named, 'leaf')).found).toEqual(['Secret ca.crt data[tls.crt]: admin'])
  })

  test('from a bundle with a damaged member, and names that member', async () => {
    const damaged = otherCa.pem.replace(/M/g, '!')
    const { found, unreadable } = await read(ca.pem + damaged + admin.pem)
    expect(found).toEqual(['certificate 1: kubernetes', 'certificate 3: admin'])
    expect(unreadable).toEqual([expect.stringMatching(/^certificate 2: line \d+: /)])
  })
})

test('skips intermediates that do not parse with a warning, as Go does, and refuses such roots and leaves', async () => {
  const damaged = otherCa.pem.replace(/M/g, '!')
  expect(await read(damaged, 'intermediates')).toMatchObject({
    found: [],
    unreadable: [expect.stringMatching(/line \d+: /)],
  })
  for (const role of ['roots', 'leaf'] as const)
    await expect(read(damaged, role)).rejects.toMatchObject({ code: 'KCERT_X509_MALFORMED' })
})

describe('reports certificates that Go does not find', () => {
  const pkcs7 = (...certificates: Uint8Array[]): Uint8Array => {
    const data = sequence(
      integer(1),
      setOf(),
      sequence(oid(oidOf('data'))),
      explicit(0, ...certificates),
      setOf(),
    )
    return sequence(oid(oidOf('signedData')), explicit(0, data))
  }
  const both = pkcs7(admin.der, ca.der)
  const seen = ['certificate 1: admin (PKCS#7)', 'certificate 2: kubernetes (PKCS#7)']
  const damaged = admin.pem.replace(/M/g, '!')

  test.for<
    [
      what: string,
      content: string | Uint8Array,
      found: string[],
      unreadable?: (string | RegExp)[],
      role?: InputRole,
    ]
  >([
    ['nothing in PEM', admin.pem, ['all: admin']],
    ['DER', admin.der, ['all: admin (DER)']],
    [
      'base64 of PEM',
      base64(admin.pem + ca.pem),
      ['certificate 1: admin (base64)', 'certificate 2: kubernetes (base64)'],
    ],
    ['the label X509 CERTIFICATE', writePem('X509 CERTIFICATE', admin.der), ['all: admin (label)']],
    ['PKCS#7', both, seen],
    ['PKCS#7 in PEM', writePem('PKCS7', both), seen],
    ['CMS in PEM', writePem('CMS', both), seen],
    [
      'PKCS#7 with a damaged member',
      pkcs7(admin.der, sequence()),
      ['certificate 1: admin (PKCS#7)'],
      [/^seen: certificate 2: /],
    ],
    [
      'damaged PKCS#7 beside a certificate',
      admin.pem + writePem('PKCS7', sequence(oid(oidOf('signedData')))),
      ['certificate 1: admin'],
      [/^seen: certificate 2: PKCS#7: content/],
    ],
    [
      'a damaged block beside a certificate',
      damaged + admin.pem,
      ['certificate 2: admin'],
      [/^unseen: certificate 1: line \d+: /],
    ],
    ['another damaged block beside a certificate', ca.keyPem.replace(/M/g, '!') + admin.pem, ['all: admin']],
    [
      'a block without a certificate in it',
      writePem('CERTIFICATE', sequence()) + admin.pem,
      ['certificate 2: admin'],
      [/^seen: certificate 1: line 1: /],
    ],
    [
      'DER with more behind it',
      Buffer.concat([admin.der, Buffer.of(0x30, 0)]),
      ['certificate 1: admin (DER)'],
      [/^seen: certificate 2: /],
    ],
    ['a Secret without ca.crt', secret({ 'tls.crt': base64(admin.pem) }), ['Secret x data[tls.crt]: admin']],
    [
      'a Secret with a damaged block',
      secret({ 'tls.crt': base64(admin.pem + damaged) }),
      ['Secret x data[tls.crt] #1: admin'],
      [/^unseen: /],
    ],
    [
      'a Secret with a block that has no certificate',
      secret({ 'tls.crt': base64(writePem('CERTIFICATE', sequence())) }),
      [],
      [/^seen: /],
      'intermediates',
    ],
  ])('%s', async ([, content, found, unreadable = [], role = 'roots']) => {
    const read = await readCertificateInput({ name: 'in', bytes: Buffer.from(content) }, role, {
      readReferencedFile: noFiles,
    })
    expect(
      read.certificates.map(
        ({ entry, certificate, form }) =>
          `${entry || 'all'}: ${certificate.subject.commonName}${form ? ` (${form})` : ''}`,
      ),
    ).toEqual(found)
    expect(
      read.unreadable.map(
        ({ entry, reason, isUnseen }) => `${isUnseen ? 'unseen' : 'seen'}: ${entry}: ${reason}`,
      ),
    ).toEqual(unreadable.map((one) => expect.stringMatching(one)))
    expect([read.isKubeconfig, read.isNoFile]).toEqual([false, true])
  })
})

describe('refuses input', () => {
  test.for<
    [rule: string, content: string | Uint8Array, role: InputRole, code: string, message: string | RegExp]
  >([
    ['when it is empty', '', 'roots', 'KCERT_USAGE', 'in contains no certificate'],
    ['when it is something else', 'hello', 'roots', 'KCERT_USAGE', 'in contains no certificate'],
    ['when it is a key', admin.keyPem, 'roots', 'KCERT_USAGE', 'in contains no certificate'],
    [
      'when the manifest has none',
      '{"kind":"Secret","data":{}}',
      'leaf',
      'KCERT_USAGE',
      'in contains no certificate',
    ],
    [
      'when the leaf is damaged, even if a sound certificate follows',
      admin.pem.replace(/M/g, '!') + ca.pem,
      'leaf',
      'KCERT_X509_MALFORMED',
      /^in: certificate 1: line \d+: /,
    ],
    [
      'when a manifest has no intermediates',
      secret({ password: base64('x') }),
      'intermediates',
      'KCERT_USAGE',
      'in contains no certificate',
    ],
    [
      'when a manifest has only damaged roots',
      secret({ 'ca.crt': base64(ca.pem.replace(/M/g, '!')) }),
      'roots',
      'KCERT_X509_MALFORMED',
      /^in: Secret x data\[ca\.crt\]: line 1: /,
    ],
    [
      'when client-go rejects the kubeconfig',
      `${whole}extensions: 7\n`,
      'leaf',
      'KCERT_KUBECONFIG_UNUSABLE',
      'client-go rejects the kubeconfig in',
    ],
    [
      'when DER is cut off',
      ca.der.slice(0, 100),
      'roots',
      'KCERT_X509_MALFORMED',
      /^in: certificate: offset 0: truncated/,
    ],
    [
      'when the user of a kubeconfig has no client certificate',
      kubeconfig('token: t', ''),
      'leaf',
      'KCERT_USAGE',
      'in: user u has no client certificate',
    ],
    [
      'when the cluster of a kubeconfig has no CA',
      kubeconfig('', 'server: "https://x"'),
      'roots',
      'KCERT_USAGE',
      'in: cluster c has no certificate-authority',
    ],
    [
      'when a kubeconfig does not say which of its clusters',
      kubeconfig('', '', 'none'),
      'roots',
      'KCERT_USAGE',
      'in: it has several clusters, and no current context selects one',
    ],
    [
      'when a file that a kubeconfig refers to is not there',
      kubeconfig('', 'certificate-authority: /nowhere/ca.crt'),
      'roots',
      'KCERT_FILE_UNREADABLE',
      'in refers to /nowhere/ca.crt, which cannot be read',
    ],
  ])('%s', async ([, content, role, code, message]) => {
    const error = await refusal(content, role)
    expect(error.code).toBe(code)
    expect(error.message).toMatch(message)
    expect([error.why, error.next]).toEqual([expect.any(String), expect.any(String)])
  })

  test('when a kubeconfig lacks the context, or has no current-context, and names its contexts', async () => {
    expect(await refusal(whole, 'leaf', 'z')).toMatchObject({
      code: 'KCERT_USAGE',
      message: 'in: no context "z"',
      why: 'its contexts: "elsewhere", "x"',
    })
    expect(await refusal(kubeconfig('', '', 'none'), 'leaf')).toMatchObject({
      message: 'in: it has several users, and no current context selects one',
      why: 'select a context with --context: "elsewhere", "x"',
      next: 'kcert inspect in',
    })
  })

  test('when the key of a kubeconfig belongs to another certificate', async () => {
    const other = client('bob', ca)
    const user = `client-certificate-data: ${base64(admin.pem)}, client-key-data: ${base64(other.keyPem)}`
    const error = await refusal(kubeconfig(user, ''), 'leaf')
    expect(error).toMatchObject({
      code: 'KCERT_PAIR_UNFIT',
      message: 'in: client-key-data does not match the certificate of user u: client-certificate-data',
    })
    expect(JSON.stringify([error.message, error.why, error.next])).not.toContain(base64(other.keyPem))
  })

  test('does not print a token', async () => {
    const error = await refusal(kubeconfig('token: verysecret', ''), 'leaf')
    expect(JSON.stringify([error.message, error.why, error.next])).not.toContain('verysecret')
    expect(error.why).toBe('it has: token')
  })

  const leafData = `client-certificate-data: ${base64(admin.pem)}`
  const config = (...lines: string[]) => ['apiVersion: v1', 'kind: Config', ...lines, ''].join('\n')
  const oneUser = config('users:', `- {name: u, user: {${leafData}}}`)
  const twoUsers = config('users:', `- {name: u, user: {${leafData}}}`, '- {name: v, user: {token: t}}')
  const oneContext = `${twoUsers}contexts:\n- {name: x, context: {cluster: c, user: u}}\n`
  const oneCluster = config(
    'clusters:',
    `- {name: c, cluster: {certificate-authority-data: ${base64(ca.pem)}}}`,
  )
  const inspect = 'kcert inspect in'
  const secp256k1 = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey
  const relabelled = admin.pem.replace('END CERTIFICATE', 'END unsupported curve')

  test.for<
    [
      what: string,
      content: string | Uint8Array,
      options: { role?: InputRole; context?: string; contextFlag?: string },
      why: string,
      next: string | undefined,
      message?: string,
    ]
  >([
    ['an empty file', '', {}, 'it is empty', inspect],
    ['a text', 'hello', {}, 'it is neither PEM, DER nor YAML', inspect],
    ['a key', admin.keyPem, {}, 'it has no CERTIFICATE block', inspect],
    [
      'a keystore',
      Buffer.of(0x30, 9, 2, 1, 3, 0x30, 4, 5, 0, 5, 0),
      {},
      'Kubernetes components do not read keystores; extract the certificates as PEM, and verify these',
      'openssl pkcs12 -nokeys -in in -out in.pem',
      'in is a PKCS#12 keystore',
    ],
    [
      'a damaged Secret',
      secret({ 'tls.crt': base64(writePem('CERTIFICATE', sequence())) }),
      { role: 'leaf' },
      'every Kubernetes component rejects such a certificate: get the file again from its issuer',
      inspect,
      'in: Secret x data[tls.crt]: certificate: tbsCertificate at offset 2: missing',
    ],
    [
      'a Secret with a certificate on a curve that Go refuses',
      secret({ 'tls.crt': base64(writePem('CERTIFICATE', craft({ spki: spkiOf(secp256k1) }))) }),
      { role: 'leaf' },
      'every Kubernetes component rejects such a certificate: reissue it with a key on P-256, P-384 or P-521: Go, and so Kubernetes, supports no other curve',
      inspect,
    ],
    [
      'a certificate on a curve that Go refuses',
      writePem('CERTIFICATE', craft({ spki: spkiOf(secp256k1) })),
      { role: 'leaf' },
      'every Kubernetes component rejects such a certificate: reissue it with a key on P-256, P-384 or P-521: Go, and so Kubernetes, supports no other curve',
      inspect,
    ],
    [
      'a label in the words of a curve that Go refuses',
      relabelled,
      { role: 'leaf' },
      'every Kubernetes component rejects such a certificate: get the file again from its issuer',
      inspect,
      'in: line 1: the END line says unsupported curve',
    ],
    [
      'a Secret with a label in these words',
      secret({ 'tls.crt': base64(relabelled) }),
      { role: 'leaf' },
      'every Kubernetes component rejects such a certificate: get the file again from its issuer',
      inspect,
      'in: Secret x data[tls.crt]: line 1: CERTIFICATE: the END line says unsupported curve',
    ],
    [
      'a context of a file without contexts',
      oneUser,
      { context: 'z' },
      'it has no contexts',
      inspect,
      'in: no context "z"',
    ],
    [
      'another context than the only one',
      oneContext,
      { role: 'leaf', context: 'z' },
      'its contexts: "x"',
      inspect,
    ],
    [
      'two users without a context',
      twoUsers,
      { role: 'leaf', contextFlag: '--context' },
      'it has no contexts',
      inspect,
    ],
    [
      'a kubeconfig where no flag names a context',
      kubeconfig('', '', 'none'),
      {},
      'its contexts: "elsewhere", "x"',
      inspect,
    ],
    [
      'two clusters',
      kubeconfig('', '', 'none'),
      { contextFlag: '--c' },
      'select a context with --c: "elsewhere", "x"',
      inspect,
    ],
    ['a user without credentials', kubeconfig('', ''), { role: 'leaf' }, 'it has no credentials', inspect],
    [
      'a cluster without a CA',
      kubeconfig('', ''),
      {},
      'clients that use it trust only the system roots',
      inspect,
    ],
    [
      'a missing file',
      kubeconfig('', 'certificate-authority: /nowhere/ca.crt'),
      {},
      'does not exist',
      'ls -l /nowhere/ca.crt',
    ],
    [
      'a relative file of standard input',
      kubeconfig('', 'certificate-authority: ca.crt'),
      {},
      'the path is relative, and the kubeconfig is not a file: pass the kubeconfig as a file',
      undefined,
      'in refers to ca.crt, which cannot be read',
    ],
    [
      "another certificate's key",
      kubeconfig(`${leafData}, client-key-data: ${base64(client('bob', ca).keyPem)}`, ''),
      { role: 'leaf' },
      'clients with this file cannot establish a TLS connection',
      inspect,
    ],
  ])(
    '%s: explains the reason and the fix',
    async ([, content, { role = 'roots', ...options }, why, next, message]) => {
      const source = { name: 'in', bytes: Buffer.from(content) }
      const refused = readCertificateInput(source, role, { readReferencedFile: noFiles, ...options })
      await expect(refused).rejects.toMatchObject({
        code: expect.stringMatching(/^KCERT_/),
        ...{ why, next, ...(message && { message }) },
      })
    },
  )

  test('but not where a kubeconfig has one unnamed user, cluster or context', async () => {
    expect((await read(oneUser, 'leaf')).found).toEqual(['user u: client-certificate-data: admin'])
    expect((await read(oneContext, 'leaf')).found).toEqual(['user u: client-certificate-data: admin'])
    expect((await read(oneCluster)).found).toEqual(['cluster c: certificate-authority-data: kubernetes'])
  })

  test('but not for an encrypted key, which proves nothing', async () => {
    const key = admin.key.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-128-cbc', passphrase: 'x' })
    const { found } = await read(kubeconfig(`${leafData}, client-key-data: ${base64(key)}`, ''), 'leaf')
    expect(found).toEqual(['user u: client-certificate-data: admin'])
  })

  test('but not for a defect in kcert, which it rethrows', async () => {
    const broken = (): never => {
      throw new TypeError('defect')
    }
    await expect(read(kubeconfig(`${leafData}, client-key: /k`, ''), 'leaf', broken)).rejects.toThrow(
      TypeError,
    )
    vi.spyOn(Certificate, 'parseFirst').mockImplementationOnce(broken)
    await expect(read(ca.der)).rejects.toThrow(TypeError)
  })
})
