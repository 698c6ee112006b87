import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { decodeBase64 } from './base64.ts'
import { readDocuments } from './documents.ts'
import { isKubeconfig, type Kubeconfig, readKubeconfig } from './kubeconfig.ts'

const truth = resolve(process.env.KCERT_TRUTH ?? '../shared/truth', 'good-certs/kubeconfig')

async function read(text: string): Promise<Kubeconfig> {
  const { documents, defects } = await readDocuments(text)
  expect(defects).toEqual([])
  expect(isKubeconfig(documents[0]!)).toBe(true)
  return readKubeconfig(documents[0]!)
}

const fatal = ({ defects }: Kubeconfig) =>
  defects.filter(({ isFatal }) => isFatal).map(({ field, reason }) => `${field}: ${reason}`)

describe('readKubeconfig', () => {
  test('returns every cluster, user and context', async () => {
    const config = await read(`apiVersion: v1
kind: Config
current-context: b
clusters:
- name: a
  cluster: {server: "https://a:6443", certificate-authority-data: QQ==, tls-server-name: kube}
- name: b
  cluster:
    server: https://b
    insecure-skip-tls-verify: yes
    certificate-authority: pki/ca.crt
users:
- name: u
  user:
    client-certificate: u.crt
    client-key-data: |
      QUJD
      REVG
contexts:
- name: b
  context: {cluster: b, user: u, namespace: x}
`)
    expect(config.clusters).toMatchObject([
      {
        name: 'a',
        server: 'https://a:6443',
        tlsServerName: 'kube',
        skipsTlsVerify: false,
        certificateAuthority: { data: Buffer.from('A') },
      },
      {
        name: 'b',
        skipsTlsVerify: true,
        certificateAuthority: { field: 'certificate-authority', file: 'pki/ca.crt' },
      },
    ])
    expect(config.users).toMatchObject([
      { name: 'u', clientCertificate: { file: 'u.crt' }, clientKey: { data: Buffer.from('ABCDEF') } },
    ])
    expect(config.contexts).toMatchObject([{ name: 'b', cluster: 'b', user: 'u' }])
    expect([config.currentContext, config.defects]).toEqual(['b', []])
  })

  test('lists credentials other than certificates, without their secrets', async () => {
    const config = await read(`users:
- {name: a, user: {exec: {command: /bin/aws, apiVersion: v1, env: [{name: KEY, value: hidden1}]}}}
- {name: b, user: {token: hidden2, tokenFile: /x}}
- {name: c, user: {tokenFile: /var/token}}
- {name: d, user: {auth-provider: {name: oidc, config: {id-token: hidden3}}}}
- {name: e, user: {username: admin, password: hidden4}}
- {name: f, user: {}}
- {name: g}
`)
    expect(config.users.map(({ credentials }) => credentials)).toEqual([
      [{ kind: 'exec', command: '/bin/aws' }],
      [{ kind: 'token' }],
      [{ kind: 'tokenFile', file: '/var/token' }],
      [{ kind: 'auth-provider', name: 'oidc' }],
      [{ kind: 'basic' }],
      [],
      [],
    ])
    expect(JSON.stringify(config.users)).not.toContain('hidden')
  })

  test("prefers data to a file, as client-go's error message explains", async () => {
    const config = await read(
      'clusters:\n- name: k\n  cluster: {server: s, certificate-authority: x, certificate-authority-data: QQ==}\n',
    )
    expect(config.clusters[0]!.certificateAuthority).toEqual({
      field: 'certificate-authority-data',
      data: Buffer.from('A'),
    })
    expect(config.defects).toMatchObject([{ field: 'clusters[k].certificate-authority', isFatal: false }])
  })

  test.each<[name: string, text: string, expected: string]>([
    [
      'data that is not base64',
      'clusters: [{name: k, cluster: {certificate-authority-data: "QQ=*"}}]',
      'clusters[k].certificate-authority-data: not base64: character 4 is "*"',
    ],
    ['a name twice', 'users: [{name: u}, {name: u}]', 'users[u]: the name "u" is used twice'],
    [
      'a number for a name',
      'users: [{name: 1}]',
      'users[0].name: a number without quotes, but a string is required',
    ],
    ['a map for a list', 'clusters: {a: b}', 'clusters: not a list'],
    ['text for a user', 'users: [{name: u, user: x}]', 'users[u].user: not an object'],
    ['another version', 'apiVersion: v2\nclusters: []', 'apiVersion: not v1'],
    [
      'another kind with all its parts',
      'kind: Konfig\nclusters: []\nusers: []\ncontexts: []',
      'kind: not Config',
    ],
    [
      'text for a boolean',
      'clusters: [{name: k, cluster: {insecure-skip-tls-verify: "true"}}]',
      'clusters[k].insecure-skip-tls-verify: neither true nor false',
    ],
    ['a mapping of extensions in the file', 'users: []\nextensions: {e: {x: 1}}', 'extensions: not a list'],
    [
      'a mapping of extensions in a cluster',
      'clusters: [{name: k, cluster: {server: a, extensions: {}}}]',
      'clusters[k].extensions: not a list',
    ],
    [
      'a text for extensions in a user',
      'users: [{name: u, user: {extensions: e}}]',
      'users[u].extensions: not a list',
    ],
    [
      'a mapping of extensions in a context',
      'contexts: [{name: c, context: {extensions: {e: 1}}}]',
      'contexts[c].extensions: not a list',
    ],
    [
      'a mapping of extensions in the preferences',
      'users: []\npreferences: {extensions: {e: 1}}',
      'preferences.extensions: not a list',
    ],
    ['an extension that is a text', 'users: []\nextensions: [e]', 'extensions[0]: not an object'],
    [
      'a number for the name of an extension',
      'users: []\nextensions: [{name: 1, extension: {x: 1}}]',
      'extensions[0].name: a number without quotes, but a string is required',
    ],
    [
      'two extensions of one name',
      'users: []\nextensions: [{name: e, extension: false}, {name: e}]',
      'extensions[1]: the name "e" is used twice',
    ],
    [
      'two extensions without a name',
      'users: []\nextensions: [{extension: 1}, {extension: 2}]',
      'extensions[1]: the name "" is used twice',
    ],
    ['a text for the preferences', 'users: []\npreferences: dark', 'preferences: not an object'],
    [
      'a text for the colours',
      'users: []\npreferences: {colors: bright}',
      'preferences.colors: neither true nor false',
    ],
    ...(
      [
        ['exec: aws', 'exec: not an object'],
        [
          'exec: {env: [{name: A, value: 5}]}',
          'exec.env[0].value: a number without quotes, but a string is required',
        ],
        ['exec: {args: [5]}', 'exec.args[0]: a number without quotes, but a string is required'],
        ['exec: {args: a}', 'exec.args: not a list'],
        ['exec: {installHint: [a]}', 'exec.installHint: not a string'],
        ['exec: {provideClusterInfo: "true"}', 'exec.provideClusterInfo: neither true nor false'],
        ['auth-provider: oidc', 'auth-provider: not an object'],
        [
          'auth-provider: {name: oidc, config: {port: 5}}',
          'auth-provider.config.port: a number without quotes, but a string is required',
        ],
        ['username: a, password: 1234', 'password: a number without quotes, but a string is required'],
        ['as: a, as-groups: dev', 'as-groups: not a list'],
        ['as: a, as-uid: 5', 'as-uid: a number without quotes, but a string is required'],
        ['as: a, as-user-extra: {k: v}', 'as-user-extra.k: not a list'],
      ] as const
    ).map(([fields, fault]): [name: string, text: string, expected: string] => [
      fields,
      `users: [{name: u, user: {${fields}}}]`,
      `users[u].${fault}`,
    ]),
    [
      'a number for proxy-url',
      'clusters: [{name: k, cluster: {server: a, proxy-url: 5}}]',
      'clusters[k].proxy-url: a number without quotes, but a string is required',
    ],
    [
      'a text for disable-compression',
      'clusters: [{name: k, cluster: {server: a, disable-compression: never}}]',
      'clusters[k].disable-compression: neither true nor false',
    ],
    [
      'n for a server',
      'clusters: [{name: k, cluster: {server: n}}]',
      'clusters[k].server: a boolean without quotes, but a string is required',
    ],
    [
      'y for current-context',
      'users: []\ncurrent-context: y',
      'current-context: a boolean without quotes, but a string is required',
    ],
  ])('reports %s, for which clients reject the file', async (_name, text, expected) => {
    expect(fatal(await read(`${text}\n`))).toEqual([expected])
  })

  test.each([
    'clusters: null\n',
    'apiVersion: ""\nkind: ""\nusers: []\n',
    'apiVersion:\nkind:\nusers:\n',
    'contexts: []\nunknown: {a: [1]}\n',
    'users:\n- name: u\n  user:\n-\n',
    'users:\nextensions:\npreferences:\n',
    'users: []\nextensions: [null, {name: a, extension: {x: 1}}, {name: b, extension: text}, {extension: [1]}]\n',
    'users: []\nextensions: [{name: a}, {name: a, extension: null}, {name: a, extension: 1}]\n',
  ])('accepts %j, as client-go does', async (text) => {
    expect(fatal(await read(text))).toEqual([])
  })
})

describe('users and clusters whose contexts clients reject', () => {
  const warnings = async (text: string) =>
    (await read(`${text}\n`)).defects.map(({ field, reason, isFatal }) => {
      expect(isFatal).toBe(false)
      return `${field}: ${reason}`
    })
  const refuses = 'clients refuse every context with it'
  const good = 'apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never'

  test.each([
    ['exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}', 'exec.command: missing'],
    [
      'exec: {command: aws, interactiveMode: Never}',
      'exec.apiVersion: missing: client.authentication.k8s.io/v1 is the current one',
    ],
    [
      'exec: {command: aws, apiVersion: client.authentication.k8s.io/v1alpha1}',
      'exec.apiVersion: clients support client.authentication.k8s.io/v1 and client.authentication.k8s.io/v1beta1',
    ],
    [
      'exec: {command: aws, apiVersion: client.authentication.k8s.io/v1}',
      'exec.interactiveMode: missing: one of Never, IfAvailable, Always',
    ],
    [`exec: {${good}, env: [{value: x}]}`, 'exec.env: a variable without a name'],
    [
      `exec: {${good}}, auth-provider: {name: oidc, config: {idp-issuer-url: a, client-id: b}}`,
      'auth-provider: used together with exec: clients accept only one of them, so remove the other',
    ],
    [
      'auth-provider: {name: gcp}',
      'auth-provider.name: gcp was removed from kubectl and client-go in 1.26; use the exec plugin gke-gcloud-auth-plugin',
    ],
    [
      'auth-provider: {name: azure}',
      'auth-provider.name: azure was removed from kubectl and client-go in 1.26; use the exec plugin kubelogin',
    ],
    ['auth-provider: {name: x}', 'auth-provider.name: clients support only oidc'],
    [
      'token: a, password: b',
      'token: used together with a user name or password: clients accept only one of them, so remove the other',
    ],
    ['as-groups: [a]', 'as-groups: without "as": the user to impersonate is missing'],
  ])('reports the problem of %s', async (fields, expected) => {
    expect(await warnings(`users: [{name: u, user: {${fields}}}]`)).toEqual([
      `users[u].${expected}; ${refuses}`,
    ])
  })

  test('accepts an exec plugin of v1beta1 without interactiveMode', async () => {
    const fields = 'exec: {command: aws, apiVersion: client.authentication.k8s.io/v1beta1}'
    expect(await warnings(`users: [{name: u, user: {${fields}}}]`)).toEqual([])
  })

  test('reports a server that is neither a URL nor HOST:PORT, and no other', async () => {
    const warningsFor = (server: string) =>
      warnings(`clusters: [{name: k, cluster: {server: ${JSON.stringify(server)}}}]`)
    const refused = [
      '://x',
      'https://a b:6443',
      'host/path',
      'host:6443/path',
      'host:abc',
      'https://h/%zz',
      'https:/h',
    ]
    for (const server of [
      ...refused,
      'https://',
      '::1',
      'https://[node]:6443',
      'https://[::1',
      'https://h:1:2',
    ])
      expect(await warningsFor(server)).toEqual([
        `clusters[k].server: neither a URL nor HOST:PORT; ${refuses}`,
      ])
    const accepted = [
      'lb',
      '192.0.2.1:6443',
      'https://[fe80::1%25eth0]:6443',
      'https://lb/k8s',
      '[::1]:6443',
      'lb/',
    ]
    for (const server of [...accepted, 'https://node.1:6443', 'https://api.k8s.01:6443', 'https://u@lb?q#f'])
      expect(await warningsFor(server)).toEqual([])
  })

  test('reports a proxy without a scheme as invalid', async () => {
    expect(await warnings('clusters: [{name: k, cluster: {server: a, proxy-url: "lb:3128"}}]')).toEqual([
      `clusters[k].proxy-url: not a URL with http, https or socks5; ${refuses}`,
    ])
  })
})

describe('isKubeconfig', () => {
  test.each([
    ['kind: Config\nclusters: []\n', true],
    ['{"users": []}', true],
    ['kind: Secret\ndata: {}\n', false],
    ['kind: KubeletConfiguration\nusers: []\n', false],
    ['- clusters\n', false],
    ['just text\n', false],
  ])('of %j is %s', async (text, expected) => {
    const { documents } = await readDocuments(text)
    expect(isKubeconfig(documents[0]!)).toBe(expected)
  })
})

describe('decodeBase64', () => {
  test.each([
    ['', ''],
    ['QUJD', 'ABC'],
    ['QUI=', 'AB'],
    ['QU\r\nI=\n', 'AB'],
  ])('reads %j', (text, expected) => {
    expect(decodeBase64(text)).toEqual({ bytes: Buffer.from(expected) })
  })

  test.each(['QUI', 'QU I=', 'Q=UI', '====', 'QUJD=', 'QU_D', 'QQ==QQ=='])(
    'rejects %j, as Go does',
    (text) => {
      expect(decodeBase64(text)).toHaveProperty('reason')
    },
  )
})

// The recorded files are not part of the project.
describe.skipIf(!existsSync(truth))('the recorded kubeconfigs', () => {
  const counts: Record<string, [clusters: number, users: number, contexts: number]> = {
    'empty-cluster-kubeconfig.yaml': [2, 3, 3],
    'empty-context-kubeconfig.yaml': [2, 3, 3],
    'empty-user-kubeconfig.yaml': [2, 2, 2],
    'kubeconfig-2.yaml': [1, 3, 1],
    'kubeconfig-dupe-cluster.yaml': [1, 0, 0],
    'kubeconfig-dupe-context.yaml': [1, 1, 1],
    'kubeconfig-dupe-user.yaml': [1, 1, 1],
    'kubeconfig-proxy-url.yaml': [7, 7, 7],
    'kubeconfig.yaml': [2, 3, 3],
    'tls-server-name-kubeconfig.yaml': [2, 1, 1],
  }

  test.each(existsSync(truth) ? readdirSync(truth).filter((name) => name.endsWith('.yaml')) : [])(
    '%s is read as client-go reads it',
    async (name) => {
      const config = await read(readFileSync(resolve(truth, name), 'utf8'))
      expect([config.clusters.length, config.users.length, config.contexts.length]).toEqual(counts[name])
      expect(fatal(config)).toEqual([])
    },
  )
})
