import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { craft, extension, extensions } from '../../test/fixtures/certificates.ts'
import { brief, inspect, named, readerOf, troubles } from '../../test/pki/inspected.ts'
import { certificatePem, keyPem, signedBy, testCa, testKey } from '../../test/pki/kubeadm-tree.ts'
import { octetString } from '../x509/der-writer.ts'
import { createRequest } from '../x509/issuing.ts'
import { oidOf } from '../x509/oids.ts'
import { writePem } from '../x509/pem.ts'

const now = new Date('2026-11-21T09:00:00Z')
const notBefore = new Date('2026-06-01T08:00:00Z')
const notAfter = new Date('2027-06-01T08:00:00Z')

const ca = testCa('kubernetes', testKey('ca'), notBefore)
const key = testKey('leaf')
const leaf = signedBy(ca, {
  commonName: 'web',
  key,
  notBefore,
  notAfter,
  extendedKeyUsage: ['serverAuth'],
  subjectAltNames: { dns: ['web'] },
})
const client = signedBy(ca, {
  commonName: 'jane',
  key,
  notBefore,
  notAfter,
  extendedKeyUsage: ['clientAuth'],
})
const request = createRequest({ subject: { commonName: 'jane' } }, key)
const base64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64')

const places = (items: readonly { source: string; entry: string }[]) =>
  items.map(({ source, entry }) => (entry === '' ? source : `${source} ${entry}`))

describe('a file', () => {
  test.each([
    ['a certificate in PEM', certificatePem(leaf), ['f']],
    ['a certificate in DER', leaf, ['f']],
    ['a bundle', certificatePem(leaf, ca.certificate), ['f certificate 1', 'f certificate 2']],
    [
      'consecutive certificates in DER',
      Buffer.concat([leaf, ca.certificate]),
      ['f certificate 1', 'f certificate 2'],
    ],
    [
      'text around the blocks, CRLF, no final line end',
      `Bag Attributes\r\n${certificatePem(leaf).replaceAll('\n', '\r\n')}end\r\n${certificatePem(ca.certificate).trimEnd()}`,
      ['f certificate 1', 'f certificate 2'],
    ],
  ])('is read if it contains %s', async (_name, content, expected) => {
    const { report } = await inspect(now, [named('f', content)])
    expect(places(report.certificates)).toEqual(expected)
    expect(report.problems).toEqual([])
  })

  test.each([
    ['PEM, as in a kubeconfig', base64(certificatePem(leaf))],
    ['DER over several lines', base64(leaf).replace(/(.{76})/g, '$1\n')],
  ])('is read if it contains base64 of %s', async (_name, text) => {
    const { report } = await inspect(now, [{ name: '-', bytes: Buffer.from(text) }])
    expect(places(report.certificates)).toEqual(['-'])
    expect(report.problems).toEqual([])
  })

  const config = `clusters: []\nusers:\n- name: jane\n  user: {client-certificate-data: ${base64(certificatePem(client))}, client-key-data: ${base64(keyPem(key))}}\n`
  const wide = Buffer.from(`\ufeff${config}`, 'utf16le')
  test.each([
    ['UTF-8', `\ufeff${config}`],
    ['UTF-16', wide],
    ['UTF-16 of the other order', Buffer.from(wide).swap16()],
  ])('is read if it is a kubeconfig after a byte order mark of %s, as in kubectl', async (_name, content) => {
    const inFolder = { ...named('/x/admin.conf', content), root: '/x' }
    for (const source of [named('admin.conf', content), inFolder]) {
      const { report } = await inspect(now, [source])
      expect(places(report.certificates)).toEqual([`${source.name} user jane: client-certificate-data`])
      expect(report.problems).toEqual([])
    }
  })

  test('is read if it contains PKCS#7', async () => {
    // SignedData without a signer: version 1, no digests, content type data, the certificates, no signers.
    const tlv = (tag: number, ...parts: Uint8Array[]): Buffer => {
      const content = Buffer.concat(parts)
      const length =
        content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 0xff]
      return Buffer.concat([Buffer.from([tag, ...length]), content])
    }
    const oid = (last: number) =>
      tlv(0x06, Buffer.from([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, last]))
    const signed = tlv(
      0x30,
      tlv(0x02, Buffer.from([1])),
      tlv(0x31),
      tlv(0x30, oid(1)),
      tlv(0xa0, leaf, ca.certificate),
      tlv(0x31),
    )
    const bundle = tlv(0x30, oid(2), tlv(0xa0, signed))
    for (const content of [bundle, writePem('PKCS7', bundle)]) {
      const { report } = await inspect(now, [named('f.p7b', content)])
      expect(report.certificates.map(({ subject }) => subject.commonName)).toEqual(['web', 'kubernetes'])
      expect(report.problems).toEqual([])
    }
  })

  test('is read if it contains a request', async () => {
    for (const content of [
      request,
      writePem('CERTIFICATE REQUEST', request),
      writePem('NEW CERTIFICATE REQUEST', request),
    ]) {
      const { report } = await inspect(now, [named('f', content)])
      expect(report.requests).toMatchObject([
        { entry: '', subject: { commonName: 'jane' }, signatureValid: true },
      ])
      expect(report.problems).toEqual([])
    }
  })

  test.each([
    ['SEC1', keyPem(key)],
    ['SEC1', key.export({ format: 'der', type: 'sec1' })],
    ['PKCS#8', key.export({ format: 'pem', type: 'pkcs8' }) as string],
    ['PKCS#8', key.export({ format: 'der', type: 'pkcs8' })],
    ['SubjectPublicKeyInfo', createPublicKey(key).export({ format: 'pem', type: 'spki' }) as string],
    ['SubjectPublicKeyInfo', createPublicKey(key).export({ format: 'der', type: 'spki' })],
  ])(
    'is read if it contains a key in %s, and the report contains nothing of the key',
    async (format, content) => {
      const { report } = await inspect(now, [named('f', content), named('f.crt', certificatePem(leaf))])
      expect(report.keys).toMatchObject([
        {
          format,
          encrypted: false,
          publicKey: { algorithm: 'ECDSA', curve: 'P-256' },
          matches: [{ source: 'f.crt' }],
        },
      ])
      const d = Buffer.from(key.export({ format: 'jwk' }).d!, 'base64url')
      for (const text of [d.toString('hex'), d.toString('base64'), d.toString('base64url')])
        expect(JSON.stringify(report)).not.toContain(text)
    },
  )

  test('reports an encrypted key as encrypted, and decrypts it with the password', async () => {
    const content = key.export({
      format: 'pem',
      type: 'pkcs8',
      cipher: 'aes-256-cbc',
      passphrase: 'open',
    }) as string
    const read = async (password?: string) => {
      const { report } = await inspect(now, [named('k', content, 0o644), named('c', certificatePem(leaf))], {
        ...(password !== undefined && { password }),
      })
      return [report.keys[0]!.encrypted, report.keys[0]!.matches.length, report.problems.length]
    }
    expect([await read(), await read('open'), await read('wrong')]).toEqual([
      [true, 0, 0],
      [true, 1, 0],
      [true, 0, 1],
    ])
  })

  test('without content is a problem if it was given, and ignored in a folder', async () => {
    const files = [
      '',
      'hello\n',
      '\0\x01\x02binary',
      'apiVersion: v1\nkind: Pod\n',
      '{"a":1}',
      writePem('X509 CRL', Buffer.from('x')),
    ]
    for (const content of files) {
      const source = named('f', content)
      expect(troubles(await inspect(now, [source]))).toEqual(['NOTHING_FOUND f'])
      const { report } = await inspect(now, [{ ...source, root: '/work' }])
      expect([report.problems, report.summary.sources]).toEqual([[], 0])
    }
    const { report } = await inspect(now, [named('f', files[5]!)])
    expect(report.problems[0]!.message).toContain('only X509 CRL')
  })

  test('that cannot be read is reported in a folder if its name suggests a certificate', async () => {
    const unreadable = (name: string) => ({
      name,
      reason: 'permission' as const,
      detail: 'EACCES',
      root: '/x',
      file: { path: name },
    })
    const outcome = await inspect(
      now,
      ['/x/a.crt', '/x/b.log', '/x/c.key', '/x/kubelet.conf', '/x/socket'].map(unreadable),
    )
    expect(outcome.report.problems.map((problem) => `${problem.severity} ${brief(problem)}`)).toEqual([
      'warning SOURCE_UNREADABLE /x/a.crt',
      'warning SOURCE_UNREADABLE /x/kubelet.conf',
      'info SOURCE_UNREADABLE /x/c.key',
    ])
  })
})

test('without read permission is a warning with any name, because its content is unknown', async () => {
  const outcome = await inspect(now, [
    {
      name: '/x/etcd',
      reason: 'permission',
      detail: 'EACCES',
      isFolder: true,
      root: '/x',
      file: { path: '/x/etcd' },
    },
  ])
  expect(troubles(outcome)).toEqual(['SOURCE_UNREADABLE /x/etcd'])
})

describe('a kubeconfig', () => {
  const config = (
    user: string,
    cluster = `certificate-authority-data: ${base64(certificatePem(ca.certificate))}`,
  ) => `apiVersion: v1
kind: Config
clusters:
- name: k
  cluster:
    server: https://10.0.0.1:6443
    ${cluster}
contexts:
- name: c
  context: {cluster: k, user: jane}
users:
- name: jane
  user: ${user}
`
  const inline = `{client-certificate-data: ${base64(certificatePem(client))}, client-key-data: ${base64(keyPem(key))}}`

  test('reports the CA of its cluster and the certificate of its user, with key and issuer', async () => {
    const { report } = await inspect(now, [named('admin.kubeconfig', config(inline))])
    expect(report.certificates).toMatchObject([
      { entry: 'cluster k: certificate-authority-data', role: 'cluster CA', isCa: true },
      {
        entry: 'user jane: client-certificate-data',
        role: 'client of user jane',
        key: { entry: 'user jane: client-key-data', matches: true },
        issuerFound: { entry: 'cluster k: certificate-authority-data' },
      },
    ])
    expect(report.problems).toEqual([])
  })

  test('is read the same in JSON', async () => {
    const json = JSON.stringify({
      clusters: [
        {
          name: 'k',
          cluster: {
            server: 'https://x',
            'certificate-authority-data': base64(certificatePem(ca.certificate)),
          },
        },
      ],
      users: [],
      contexts: [],
    })
    expect(places((await inspect(now, [named('f', json)])).report.certificates)).toEqual([
      'f cluster k: certificate-authority-data',
    ])
  })

  test('resolves files relative to its folder', async () => {
    const files = new Map([
      ['/home/jane/pki/ca.crt', { bytes: Buffer.from(certificatePem(ca.certificate)), mode: 0o644 }],
      ['/home/jane/jane.crt', { bytes: Buffer.from(certificatePem(client)), mode: 0o644 }],
      ['/keys/jane.key', { bytes: Buffer.from(keyPem(key)), mode: 0o640 }],
    ])
    const text = config(
      '{client-certificate: ../jane.crt, client-key: /keys/jane.key}',
      'certificate-authority: ../pki/./ca.crt',
    )
    const { report } = await inspect(now, [named('/home/jane/.kube/config', text)], {
      readReferencedFile: readerOf(files),
    })
    expect(places(report.certificates)).toEqual([
      '/home/jane/.kube/config cluster k: certificate-authority ../pki/./ca.crt',
      '/home/jane/.kube/config user jane: client-certificate ../jane.crt',
    ])
    expect(report.certificates[1]!.key).toMatchObject({ matches: true })
    expect(report.problems.map((problem) => `${problem.severity} ${brief(problem)}`)).toEqual([
      'info KEY_READABLE_BY_OTHERS /home/jane/.kube/config user jane: client-key /keys/jane.key',
    ])
  })

  test('shows every cluster with its server, every user and context, and the current context', async () => {
    const config = [
      'clusters:',
      '- {name: k, cluster: {server: "https://me:secret@10.0.0.1:6443", tls-server-name: api, certificate-authority-data: ""}}',
      '- {name: open, cluster: {server: "https://10.0.0.2", insecure-skip-tls-verify: true}}',
      'users:',
      '- {name: u, user: {token: secret-token}}',
      'contexts:',
      '- {name: a, context: {cluster: k, user: u, namespace: web}}',
      '- {name: b, context: {cluster: open, user: gone}}',
      'current-context: a',
      '',
    ].join('\n')
    const { report } = await inspect(now, [named('f', config)])
    expect(report.kubeconfigs).toEqual([
      {
        source: 'f',
        entry: '',
        currentContext: 'a',
        clusters: [
          { name: 'k', server: 'https://10.0.0.1:6443', tlsServerName: 'api', insecureSkipTlsVerify: false },
          { name: 'open', server: 'https://10.0.0.2', tlsServerName: undefined, insecureSkipTlsVerify: true },
        ],
        users: [{ name: 'u', credentials: ['token'] }],
        contexts: [
          { name: 'a', cluster: 'k', user: 'u', namespace: 'web', isCurrent: true },
          { name: 'b', cluster: 'open', user: 'gone', namespace: undefined, isCurrent: false },
        ],
      },
    ])
    expect(JSON.stringify(report)).not.toContain('secret')
  })

  test('lists users without a certificate and the reason, and keeps no token', async () => {
    const users = [
      '{token: secret-token}',
      '{exec: {command: aws-iam-authenticator, apiVersion: v1}}',
      '{tokenFile: /var/token}',
      '{auth-provider: {name: oidc}}',
      '{username: a, password: secret-password}',
      '{}',
    ]
    const reasons: string[] = []
    for (const user of users) {
      const { report } = await inspect(now, [named('f', config(user))])
      expect(JSON.stringify(report)).not.toContain('secret')
      reasons.push(...report.withoutCertificate.map(({ reason }) => reason))
    }
    expect(reasons).toEqual([
      'a bearer token',
      'runs aws-iam-authenticator (exec); kcert never runs it',
      'a bearer token in /var/token',
      'uses the auth provider oidc',
      'user name and password',
      'no credentials',
    ])
  })

  test('from standard input has no folder for relative files', async () => {
    const source = { name: '-', bytes: Buffer.from(config('{token: x}', 'certificate-authority: ca.crt')) }
    const { report } = await inspect(now, [source])
    expect(report.withoutCertificate[0]).toEqual({
      source: '-',
      entry: 'cluster k',
      reason: 'certificate-authority is a file whose folder is not known: ca.crt',
    })
  })

  test('settings in a Secret or ConfigMap are read, in base64 or plain, without their keys', async () => {
    const pem = certificatePem(ca.certificate)
    const argo = JSON.stringify({
      tlsClientConfig: {
        caData: base64(pem),
        certData: base64(certificatePem(client)),
        keyData: base64(keyPem(key)),
      },
    })
    const lines = pem.trimEnd().replaceAll('\n', '\n          ')
    const manifest = `kind: Secret
metadata: {name: prod, namespace: argocd}
data:
  config: ${base64(argo)}
---
kind: ConfigMap
metadata: {name: scrape, namespace: monitoring}
data:
  a.yaml: |
    jobs:
      - ca: |
          ${lines}
  b.yaml: "jobs: [{ca: LS0tLS1CRUdJTiBDRVJUSUZJQ0FUR but not one}]"
`
    const { report } = await inspect(now, [named('f', manifest)])
    expect(places(report.certificates)).toEqual([
      'f Secret argocd/prod data[config] tlsClientConfig.caData',
      'f Secret argocd/prod data[config] tlsClientConfig.certData',
      'f ConfigMap monitoring/scrape data[a.yaml] jobs[0].ca',
    ])
    expect(report.keys).toEqual([])
    expect(report.problems).toEqual([])
  })

  test('is read in a Secret or ConfigMap, where its file paths are those of a pod', async () => {
    const secret = `kind: Secret\nmetadata: {name: c-kubeconfig, namespace: capi}\ndata:\n  value: ${base64(config(inline))}\n`
    const map = `kind: ConfigMap\nmetadata: {name: kube-proxy, namespace: kube-system}\ndata:\n  kubeconfig.conf: |\n${config('{tokenFile: /var/run/token}', 'certificate-authority: /var/run/ca.crt').replace(/^/gm, '    ')}`
    const { report } = await inspect(now, [named('f', `${secret}---\n${map}`)])
    expect(places(report.certificates)).toEqual([
      'f Secret capi/c-kubeconfig data[value] cluster k: certificate-authority-data',
      'f Secret capi/c-kubeconfig data[value] user jane: client-certificate-data',
    ])
    expect(report.withoutCertificate.map(({ reason }) => reason)).toEqual([
      'certificate-authority is a file of the pod that uses this: /var/run/ca.crt',
      'a bearer token in /var/run/token',
    ])
    expect(report.problems).toEqual([])
  })
})

describe('a manifest', () => {
  const tls = (more = '') => `apiVersion: v1
kind: Secret
metadata:
  name: web
  namespace: shop
type: kubernetes.io/tls
data:
  tls.crt: ${base64(certificatePem(leaf, ca.certificate))}
  tls.key: ${base64(keyPem(key))}
${more}`

  test('gives the chain and the key of a TLS Secret', async () => {
    const { report } = await inspect(now, [
      named('s.yaml', tls(`  ca.crt: ${base64(certificatePem(ca.certificate))}\n`)),
    ])
    expect(places(report.certificates)).toEqual([
      's.yaml Secret shop/web data[tls.crt] #1',
      's.yaml Secret shop/web data[tls.crt] #2',
      's.yaml Secret shop/web data[ca.crt]',
    ])
    expect(report.certificates[0]!.key).toEqual({
      source: 's.yaml',
      entry: 'Secret shop/web data[tls.key]',
      matches: true,
    })
    expect(report.problems).toEqual([])
  })

  test('with several documents, Lists and JSON is read completely', async () => {
    const map = {
      kind: 'ConfigMap',
      metadata: { name: 'kube-root-ca.crt', namespace: 'default' },
      data: { 'ca.crt': certificatePem(ca.certificate) },
    }
    const list = JSON.stringify({
      kind: 'List',
      items: [map, { kind: 'ConfigMapList', items: [map] }, { kind: 'Pod' }],
    })
    for (const text of [list, `---\n${tls()}---\n${list}\n`]) {
      const { report } = await inspect(now, [named('f', text)])
      expect(report.certificates.filter(({ role }) => role === 'cluster CA')).toHaveLength(2)
      expect(report.problems).toEqual([])
    }
  })

  test('is read if it is a typed list whose items have no kind, as kubectl get --raw prints it', async () => {
    const list = (kind: string, item: object) =>
      named(kind, JSON.stringify({ kind, apiVersion: 'v1', items: [item] }))
    const { report } = await inspect(now, [
      list('SecretList', { metadata: { name: 's' }, data: { 'tls.crt': base64(certificatePem(leaf)) } }),
      list('CertificateSigningRequestList', {
        metadata: { name: 'r' },
        spec: { request: base64(writePem('CERTIFICATE REQUEST', request)) },
      }),
    ])
    expect([...places(report.certificates), ...places(report.requests)]).toEqual([
      'SecretList Secret s data[tls.crt]',
      'CertificateSigningRequestList CertificateSigningRequest r spec.request',
    ])
  })

  test("gives the front proxy's CAs from extension-apiserver-authentication", async () => {
    const text = JSON.stringify({
      kind: 'ConfigMap',
      metadata: { name: 'extension-apiserver-authentication', namespace: 'kube-system' },
      data: {
        'client-ca-file': certificatePem(ca.certificate),
        'requestheader-client-ca-file': certificatePem(ca.certificate),
        'requestheader-group-headers': '["X-Remote-Group"]',
      },
    })
    const { report } = await inspect(now, [named('f', text)])
    expect(report.certificates.map(({ role }) => role)).toEqual(['client CA', 'front-proxy CA'])
  })

  test('gives caBundles of webhooks, APIServices, CRDs and trust bundles', async () => {
    const caBundle = base64(certificatePem(ca.certificate))
    const objects = [
      {
        kind: 'ValidatingWebhookConfiguration',
        metadata: { name: 'v' },
        webhooks: [
          { name: 'a.x', clientConfig: { caBundle } },
          { name: 'b.x', clientConfig: {} },
        ],
      },
      {
        kind: 'MutatingWebhookConfiguration',
        metadata: { name: 'm' },
        webhooks: [{ name: 'c.x', clientConfig: { caBundle } }],
      },
      { kind: 'APIService', metadata: { name: 'v1beta1.metrics.k8s.io' }, spec: { caBundle } },
      {
        kind: 'CustomResourceDefinition',
        metadata: { name: 'r' },
        spec: { conversion: { webhook: { clientConfig: { caBundle } } } },
      },
      {
        kind: 'ClusterTrustBundle',
        metadata: { name: 't' },
        spec: { trustBundle: certificatePem(ca.certificate) },
      },
    ]
    const { report } = await inspect(now, [named('f', JSON.stringify({ kind: 'List', items: objects }))])
    expect(report.certificates.map(({ entry, role }) => `${role}: ${entry}`)).toEqual([
      'webhook CA: ValidatingWebhookConfiguration v webhooks[a.x].clientConfig.caBundle',
      'webhook CA: MutatingWebhookConfiguration m webhooks[c.x].clientConfig.caBundle',
      'aggregated API CA: APIService v1beta1.metrics.k8s.io spec.caBundle',
      'conversion webhook CA: CustomResourceDefinition r spec.conversion.webhook.clientConfig.caBundle',
      'trust bundle: ClusterTrustBundle t spec.trustBundle',
    ])
    expect(report.problems).toEqual([])
  })

  test('gives the request, requester, status and issued certificate of a CertificateSigningRequest', async () => {
    const csr = {
      kind: 'CertificateSigningRequest',
      metadata: { name: 'csr-x' },
      spec: {
        request: base64(writePem('CERTIFICATE REQUEST', request)),
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth'],
        username: 'system:admin',
      },
      status: {
        conditions: [{ type: 'Approved', status: 'True' }],
        certificate: base64(certificatePem(client)),
      },
    }
    const { report } = await inspect(now, [named('f', JSON.stringify(csr))])
    expect(report.requests).toMatchObject([
      {
        entry: 'CertificateSigningRequest csr-x spec.request',
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth'],
        username: 'system:admin',
        condition: 'Approved,Issued',
      },
    ])
    expect(report.certificates).toMatchObject([
      { entry: 'CertificateSigningRequest csr-x status.certificate', role: 'issued' },
    ])
    expect(report.problems).toEqual([])
  })

  test.each([
    ['{}', 'Pending'],
    ['{"conditions":[{"type":"Denied"}]}', 'Denied'],
    ['{"conditions":[{"type":"Approved"},{"type":"Failed"}]}', 'Approved,Failed'],
  ])('gives a request with status %s the condition %s', async (status, expected) => {
    const text = `{"kind":"CertificateSigningRequest","metadata":{"name":"c"},"spec":{"request":"${base64(writePem('CERTIFICATE REQUEST', request))}"},"status":${status}}`
    expect((await inspect(now, [named('f', text)])).report.requests[0]!.condition).toBe(expected)
  })

  test('shows nothing of token, release and registry Secrets', async () => {
    const secrets = [
      'bootstrap.kubernetes.io/token',
      'helm.sh/release.v1',
      'kubernetes.io/dockerconfigjson',
    ].map((type) => ({
      kind: 'Secret',
      metadata: { name: 's' },
      type,
      data: { 'token-secret': base64('verysecret123456'), release: base64(certificatePem(leaf)) },
    }))
    const account = {
      kind: 'Secret',
      metadata: { name: 'a' },
      type: 'kubernetes.io/service-account-token',
      data: { token: base64('eyJhbGciOi'), 'ca.crt': base64(certificatePem(ca.certificate)) },
    }
    const { report } = await inspect(now, [named('f', JSON.stringify({ items: [...secrets, account] }))])
    expect(report.certificates).toMatchObject([{ entry: 'Secret a data[ca.crt]', role: 'cluster CA' }])
    expect(JSON.stringify(report)).not.toMatch(/verysecret|eyJhbGciOi/)
  })
})

describe('links', () => {
  test('find the issuer whose key signed, among several with the same name', async () => {
    const other = testCa('kubernetes', testKey('other'), notBefore)
    const { report } = await inspect(now, [
      named('a', certificatePem(other.certificate)),
      named('b', certificatePem(leaf)),
      named('c', certificatePem(ca.certificate)),
    ])
    expect(report.certificates.map(({ issuerFound }) => issuerFound?.source)).toEqual(['a', 'c', 'c'])
  })

  test('reject an issuer with the right name and the wrong key', async () => {
    const other = testCa('kubernetes', testKey('other'), notBefore)
    const { report } = await inspect(now, [
      named('a', certificatePem(other.certificate)),
      named('b', certificatePem(leaf)),
    ])
    expect(report.certificates[1]!.issuerFound).toBeUndefined()
  })

  test('prefer the valid certificate of a CA renewed with the same key', async () => {
    const old = testCa('kubernetes', testKey('ca'), new Date('2016-01-01T00:00:00Z'))
    const { report } = await inspect(now, [
      named('old', certificatePem(old.certificate)),
      named('new', certificatePem(ca.certificate)),
      named('leaf', certificatePem(leaf)),
    ])
    expect(report.certificates[2]!.issuerFound!.source).toBe('new')
  })

  test('skip some of thousands of CAs with damaged signatures, and report which issuers were not searched', async () => {
    const der = Buffer.from(ca.certificate)
    const damaged = Array.from({ length: 3_500 }, (_, i) => {
      const copy = Buffer.from(der)
      copy.writeUInt16BE(i, copy.length - 2)
      return writePem('CERTIFICATE', copy)
    })
    const { report } = await inspect(now, [named('f', damaged.join('') + certificatePem(leaf))])
    const { certificates } = JSON.parse(JSON.stringify(report)) as typeof report
    const unsought = certificates.filter(({ issuerNotSearched }) => issuerNotSearched)
    expect(certificates.every(({ issuerFound }) => issuerFound === undefined)).toBe(true)
    expect(unsought.length).toBeGreaterThan(400)
    expect(unsought.length).toBeLessThan(3_500)
    expect(unsought.at(-1)!.subject.commonName).toBe('web')
  })

  test('return the certificates in the order of the reports', async () => {
    const { report } = await inspect(now, [
      named('a', certificatePem(leaf, ca.certificate)),
      named('b', certificatePem(client)),
    ])
    const certificates = report.certificates.map(({ of }) => of.certificate)
    expect(certificates.map(({ subject }) => subject.commonName)).toEqual(['web', 'kubernetes', 'jane'])
    expect(report.certificates.map(({ subject }) => subject.commonName)).toEqual([
      'web',
      'kubernetes',
      'jane',
    ])
  })
})

describe('the report', () => {
  test('includes digests and links in its JSON', async () => {
    const { report } = await inspect(now, [named('a', certificatePem(ca.certificate))])
    const json = JSON.parse(JSON.stringify(report.certificates[0]!))
    expect(json.fingerprintSha256).toMatch(/^[0-9a-f]{64}$/)
    expect(json.caPin).toBe(`sha256:${json.publicKey.sha256}`)
    expect(json.issuerFound).toEqual({ source: 'a', entry: '', fingerprintSha256: json.fingerprintSha256 })
    expect(json).not.toHaveProperty('key')
  })

  test('has name constraints, CRLs, AIA, policies and critical extensions that Go does not support', async () => {
    const der = signedBy(ca, {
      commonName: 'intermediate',
      key,
      notBefore,
      notAfter,
      basicConstraints: { ca: true },
      nameConstraints: {
        permitted: { dns: ['example.com'], ip: ['10.0.0.0/8'] },
        excluded: { email: ['a@b'] },
      },
      crlDistributionPoints: ['http://a/crl'],
      authorityInfoAccess: { ocsp: ['http://a/ocsp'], caIssuers: ['http://a/ca'] },
      policies: ['1.2.3'],
    })
    const { report } = await inspect(now, [named('f', certificatePem(der)), named('g', certificatePem(leaf))])
    const [one, plain] = (JSON.parse(JSON.stringify(report)) as typeof report).certificates
    expect(one).toMatchObject({
      nameConstraints: {
        permitted: { dns: ['example.com'], ip: ['10.0.0.0/8'], email: [], uri: [] },
        excluded: { dns: [], ip: [], email: ['a@b'], uri: [] },
      },
      crlDistributionPoints: ['http://a/crl'],
      authorityInfoAccess: { ocsp: ['http://a/ocsp'], caIssuers: ['http://a/ca'] },
      certificatePolicies: ['1.2.3'],
    })
    expect(Object.keys(plain!)).not.toContain('crlDistributionPoints')
    const odd = craft({ tail: extensions([extension('nsComment', octetString(new Uint8Array(0)), true)]) })
    const unknown = (await inspect(now, [named('f', odd)])).report.certificates[0]!
    expect(unknown.unknownCriticalExtensions).toEqual([oidOf('nsComment')])
  })

  test('shows the evaluation time and the creation time', async () => {
    const { report } = await inspect(now, [named('f', certificatePem(leaf))], {
      generatedAt: new Date('2026-11-20T00:00:00Z'),
    })
    expect(report).toMatchObject({ generatedAt: '2026-11-20T00:00:00Z', at: '2026-11-21T09:00:00Z' })
  })

  test('counts its entries and shows when the next certificate expires', async () => {
    const past = signedBy(ca, {
      commonName: 'past',
      key,
      notBefore,
      notAfter: new Date('2026-07-01T00:00:00Z'),
    })
    const future = signedBy(ca, {
      commonName: 'future',
      key,
      notBefore: new Date('2026-12-01T00:00:00Z'),
      notAfter,
    })
    const { report } = await inspect(now, [
      named('a', certificatePem(leaf, past, future)),
      named('b', writePem('CERTIFICATE REQUEST', request)),
    ])
    expect(report.summary).toEqual({
      sources: 2,
      certificates: 3,
      requests: 1,
      keys: 0,
      tokens: 0,
      ok: 1,
      warning: 0,
      critical: 0,
      expired: 1,
      notYetValid: 1,
      problems: { info: 0, warning: 0, critical: 2 },
      nextExpiry: '2027-06-01T08:00:00Z',
    })
  })

  test('shows the length of an RSA key below 2048 bits', async () => {
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
    const small = signedBy(ca, { commonName: 'w', key: weak, notBefore, notAfter })
    const { report } = await inspect(now, [named('a', certificatePem(small))])
    expect(report.certificates[0]!.publicKey).toMatchObject({ algorithm: 'RSA', bits: 1024 })
  })
})
