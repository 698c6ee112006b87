import * as fs from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { journalLine } from '../../src/rotation/journal.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { FleetServer, startFleet } from '../fakes/fleet-servers.ts'
import { kcertBeside } from './program.ts'
import { violations } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

const folder = temporaryFolder('fleet')
const isRoot = process.getuid?.() === 0
const stranger = 65534
let servers: FleetServer[]
let one: FleetServer
let two: FleetServer

beforeAll(async () => {
  servers = await startFleet(10, 5)
  one = await new FleetServer('one', 'good').listen()
  two = await new FleetServer('two', 'good').listen()
})
afterAll(() => {
  for (const server of [...servers, one, two]) server.close()
})

interface Line {
  readonly kind: string
  readonly cluster: string
  readonly source: string
  readonly status: string
  readonly error?: { readonly code: string; readonly what: string; readonly why?: string }
  readonly report?: {
    readonly certificates: readonly { readonly source: string; readonly subject: { readonly text: string } }[]
  }
  readonly notRead: readonly { readonly cluster: string; readonly source: string }[]
  readonly skipped: readonly { readonly source: string; readonly reason: string }[]
}

async function fleet(args: readonly string[], env = {}) {
  const session = await kcertBeside(['fleet', ...args], { cwd: folder, env })
  const lines = (): Line[] => {
    const documents = session.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
    for (const document of documents) expect(violations(document.kind, document)).toEqual([])
    return documents
  }
  return { ...session, lines }
}

/** The CNs in the Secrets of a cluster. */
const secretsOf = ({ report }: Line): string[] =>
  (report?.certificates ?? [])
    .filter(({ source }) => source === 'secret shop/only-here')
    .map(({ subject }) => subject.text)

function file(path: string, content: string, mode = 0o600): string {
  const whole = join(folder, path)
  fs.mkdirSync(join(whole, '..'), { recursive: true })
  fs.writeFileSync(whole, content, { mode })
  fs.chmodSync(whole, mode)
  return whole
}

// Also on a busy machine, the others answer in this time.
const quick = ['--deadline', '15s', '--timeout', '1s']

test('reads every cluster that answers, and names the others with exit code 4', async () => {
  for (const server of servers) server.writeKubeconfig(join(folder, 'ten'))
  const { lines, stderr, exit } = await fleet(['inspect', 'ten', '-o', 'json', ...quick])
  const documents = lines()
  const summary = documents.at(-1)!
  expect(stderr).toBe('')
  expect(exit).toBe(4)
  expect(summary.kind).toBe('FleetSummary')
  const hostile = servers.filter(({ kind }) => kind !== 'good').map(({ name }) => name)
  expect(summary.notRead.map(({ cluster }) => cluster).sort()).toEqual(hostile)
  for (const server of servers) {
    const [line] = documents.filter(({ cluster }) => cluster === server.name)
    if (server.kind === 'good')
      expect([line!.status, secretsOf(line!)]).toEqual(['ok', [`CN=${server.name}`]])
    if (server.kind === 'redirect') expect(line!.error!.what).toMatch(/HTTP status 307/)
  }
  expect(servers.map(({ foreignTokens }) => foreignTokens)).toEqual(servers.map(() => 0))
})

test('keeps two clusters of one name apart in every format', async () => {
  const first = one.writeKubeconfig(join(folder, 'same'), 'a.conf', 'prod')
  const second = two.writeKubeconfig(join(folder, 'same'), 'b.conf', 'prod')
  const documents = (await fleet(['inspect', first, second, '-o', 'json'])).lines()
  const bySource = Object.fromEntries(documents.map((line) => [line.source, secretsOf(line)]))
  expect(bySource).toMatchObject({ [first]: ['CN=one'], [second]: ['CN=two'] })
  const { stdout } = await fleet(['inspect', first, second, '-o', 'prometheus'])
  const of = (cn: string) => stdout.split('\n').filter((line) => line.includes(`subject="CN=${cn}"`))
  for (const [cn, source] of [
    ['one', first],
    ['two', second],
  ] as const)
    for (const line of of(cn)) expect(line).toContain(`{cluster="prod",cluster_source="${source}",source="`)
  expect(of('one').length).toBeGreaterThan(2)
  const heads = stdout.split('\n').filter((line) => line.startsWith('# TYPE'))
  expect(new Set(heads).size).toBe(heads.length)
})

test('prints a table with a line for each cluster', async () => {
  one.writeKubeconfig(join(folder, 'table'))
  file('table/two.conf', JSON.stringify({ clusters: [], contexts: [{ name: 'lost', context: {} }] }))
  const { stdout, exit } = await fleet(['inspect', 'table'])
  expect(stdout).toMatch(
    /^CLUSTER {2}STATUS {7}CERTIFICATES {2}EXPIRED {2}CRITICAL {2}WARNING {2}NEXT EXPIRY {7}SOURCE\n/,
  )
  expect(stdout).toMatch(/^one {6}ok {11}3 {13}0 {8}0 {9}0 {8}\d{4}-\d\d-\d\d \d\d:\d\d {2}table\/one.conf$/m)
  expect(stdout).toMatch(/^lost {5}unreachable {2,}table\/two.conf\n {4}KCERT_KUBECONFIG_UNUSABLE: /m)
  expect(stdout).toMatch(/\n\n2 clusters: 1 \w+, 1 \w+\n$/)
  expect(exit).toBe(4)
})

test('escapes names of contexts and files in every format', async () => {
  const name = 'p\u001b[31mrod\ncluster="x"} 1'
  const path = one.writeKubeconfig(join(folder, 'hostile\nnames'), 'a\u001b]0;x.conf', name)
  for (const format of ['text', 'prometheus', 'html', 'json']) {
    const { stdout, stderr } = await fleet(['inspect', path, '-o', format])
    expect(stdout + stderr).not.toContain('\u001b')
    expect(stdout).toContain('\\u001b')
    if (format === 'prometheus')
      for (const line of stdout.trimEnd().split('\n')) expect(line).toMatch(/^(?:#|kcert_)/)
    if (format === 'json') expect(stdout.trimEnd().split('\n')).toHaveLength(2)
  }
})

test('names and counts files that are not kubeconfigs, and reads the rest of the folder', async () => {
  one.writeKubeconfig(join(folder, 'mixed'), 'good.conf', 'good')
  for (let index = 0; index < 30; index++)
    file(`mixed/note-${index}.txt`, `contexts: are not here ${index}\n`)
  file('mixed/empty', '')
  file('mixed/binary', Buffer.alloc(100_000).toString('latin1'))
  file('mixed/damaged.conf', 'contexts: [}\n')
  fs.truncateSync(file('mixed/huge', ''), 3 * 1024 ** 3)
  fs.symlinkSync('good.conf', join(folder, 'mixed/link.conf'))
  fs.symlinkSync('..', join(folder, 'mixed/up'))
  const { lines } = await fleet(['inspect', 'mixed', '-o', 'json'])
  const documents = lines()
  const { skipped } = documents.at(-1)!
  expect(
    documents
      .slice(0, -1)
      .map(({ source }) => source)
      .sort(),
  ).toEqual(['mixed/good.conf', 'mixed/link.conf'])
  expect(skipped.map(({ source }) => source)).toEqual(
    expect.arrayContaining([
      'mixed/note-7.txt',
      'mixed/empty',
      'mixed/binary',
      'mixed/damaged.conf',
      'mixed/huge',
    ]),
  )
  expect(skipped).toHaveLength(34)
  const { stderr, exit } = await fleet(['inspect', 'mixed'])
  expect(stderr).toMatch(
    /^note: skipped 34 files that are not kubeconfigs: (?:mixed\/[\w.-]+, ){9}mixed\/[\w.-]+ and 24 more, which -o json lists\n$/,
  )
  expect(exit).toBe(0)
})

test('reads a kubeconfig by a pattern, and only the contexts that match', async () => {
  one.writeKubeconfig(join(folder, 'glob'), 'one.yaml', 'prod-eu')
  two.writeKubeconfig(join(folder, 'glob'), 'two.yaml', 'stage-eu')
  const { lines } = await fleet(['inspect', 'glob/*.yaml', '--contexts', 'prod-*', '-o', 'json'])
  expect(lines().map(({ cluster }) => cluster)).toEqual(['prod-eu', undefined])
  const none = await fleet(['inspect', 'glob', '--contexts', 'nothing'])
  expect(none.stderr).toContain(
    'KCERT_USAGE: there is no cluster to read\nwhy: no context matches --contexts\n',
  )
  expect(none.exit).toBe(2)
  expect((await fleet(['inspect', 'glob/*.json'])).stderr).toContain(
    'KCERT_FILE_NOT_FOUND: glob/*.json does not exist',
  )
})

test('refuses flags of the management cluster without --from, so that one token never goes to all clusters', async () => {
  one.writeKubeconfig(join(folder, 'flags'))
  const { stderr, exit } = await fleet(['inspect', 'flags', '--token', 'abc'])
  expect(stderr).toContain('KCERT_USAGE: --token requires --from\n')
  expect(exit).toBe(2)
})

describe('a kubeconfig with a program', () => {
  const program = (script: string, mode = 0o600, path = 'exec/exec.conf') => {
    const config = JSON.parse(one.kubeconfig('exec')) as { users: object[] }
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      interactiveMode: 'Never',
      command: 'sh',
      args: ['-c', script],
    }
    config.users = [{ name: 'u', user: { exec } }]
    return file(path, JSON.stringify(config), mode)
  }

  test('runs it only for contexts that are selected', async () => {
    const mark = join(folder, 'ran')
    const status = JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: one.token },
    })
    const path = program(`touch ${mark}; echo '${status}'`)
    two.writeKubeconfig(join(folder, 'exec'), 'two.conf', 'plain')
    expect((await fleet(['inspect', 'exec', '--contexts', 'plain'])).exit).toBe(0)
    expect(fs.existsSync(mark)).toBe(false)
    const { lines } = await fleet(['inspect', path, '-o', 'json'])
    expect(secretsOf(lines()[0]!)).toEqual(['CN=one'])
    expect(fs.existsSync(mark)).toBe(true)
  })

  test('kills it and its children at the deadline', async () => {
    const pids = join(folder, 'pids')
    const path = program(`echo $$ > ${pids}; sleep 300 & echo $! >> ${pids}; wait`, 0o600, 'exec/slow.conf')
    const before = Date.now()
    const { lines, exit } = await fleet(['inspect', path, '-o', 'json', '--deadline', '1s'])
    expect(Date.now() - before).toBeLessThan(20_000)
    expect(lines()[0]!.error).toMatchObject({
      code: 'KCERT_UNREACHABLE',
      why: 'no complete answer within 1 s (--deadline)',
    })
    expect(exit).toBe(4)
    const running = fs
      .readFileSync(pids, 'utf8')
      .trim()
      .split('\n')
      .filter((pid) => isRunning(Number(pid)))
    expect(running).toEqual([])
  })

  test('refuses it if other users can change the file', async () => {
    const mark = join(folder, 'ran-open')
    const path = program(`touch ${mark}`, 0o666, 'exec/open.conf')
    const { lines, exit } = await fleet(['inspect', path, '-o', 'json'])
    expect(lines()[0]).toMatchObject({ status: 'refused', error: { code: 'KCERT_FILE_UNTRUSTED' } })
    expect(exit).toBe(5)
    expect(fs.existsSync(mark)).toBe(false)
  })

  test.runIf(isRoot)('refuses it if another user owns the file, also through a symbolic link', async () => {
    const mark = join(folder, 'ran-foreign')
    const path = program(`touch ${mark}`, 0o600, 'exec/foreign.conf')
    fs.chownSync(path, stranger, stranger)
    const link = join(folder, 'exec/own-link.conf')
    fs.symlinkSync(path, link)
    const { lines } = await fleet(['inspect', path, link, '-o', 'json'])
    expect(
      lines()
        .slice(0, -1)
        .map(({ status }) => status),
    ).toEqual(['refused', 'refused'])
    expect(fs.existsSync(mark)).toBe(false)
  })

  test('sends no file of this machine for a kubeconfig that other users can change', async () => {
    const secret = file('exec/secret', two.token)
    const config = JSON.parse(one.kubeconfig('tokenfile')) as { users: object[] }
    config.users = [{ name: 'u', user: { tokenFile: secret } }]
    const path = file('exec/tokenfile.conf', JSON.stringify(config), 0o666)
    const before = one.foreignTokens
    const { lines } = await fleet(['inspect', path, '-o', 'json'])
    expect(lines()[0]).toMatchObject({ status: 'refused', error: { code: 'KCERT_FILE_UNTRUSTED' } })
    expect(one.foreignTokens).toBe(before)
  })
})

describe('the clusters of a management cluster', () => {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const secrets = (namespace: string) =>
    ({ group: '', version: 'v1', resource: 'secrets', namespace }) as const
  let management: FakeApiServer
  let from: string[]

  const put = (namespace: string, name: string, labels: object, data: Record<string, string>): void => {
    const encoded = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)]))
    management.put(secrets(namespace), { metadata: { name, namespace, labels }, data: encoded })
  }
  const clusterApi = (namespace: string, cluster: string, kubeconfig: string): void => {
    const labels = { 'cluster.x-k8s.io/cluster-name': cluster }
    put(namespace, `${cluster}-kubeconfig`, labels, { value: kubeconfig })
    put(namespace, `${cluster}-ca`, labels, { 'tls.crt': management.caPem, 'tls.key': 'PRIVATE' })
  }
  const argocd = (name: string, fields: object, server = two.url): void =>
    put(
      'argocd',
      name,
      { 'argocd.argoproj.io/secret-type': 'cluster' },
      {
        name: `argo-${name}`,
        server,
        config: JSON.stringify({ tlsClientConfig: { caData: caOf(two) }, ...fields }),
      },
    )
  const profile = (name: string, status: object): void => {
    const place = {
      group: 'multicluster.x-k8s.io',
      version: 'v1alpha1',
      resource: 'clusterprofiles',
      namespace: 'fleet',
    } as const
    management.put(place, { metadata: { name, namespace: 'fleet' }, spec: {}, status })
  }
  const caOf = (server: FleetServer): string =>
    (JSON.parse(server.kubeconfig()) as { clusters: { cluster: Record<string, string> }[] }).clusters[0]!
      .cluster['certificate-authority-data']!

  beforeAll(async () => {
    management = await startApiServer({ customGroups: ['multicluster.x-k8s.io'] })
    from = ['--kubeconfig', management.writeKubeconfig(join(folder, 'management.conf'))]
  })
  afterAll(() => management.close())

  test('are read from the kubeconfig Secrets of Cluster API, each with its own credentials', async () => {
    clusterApi('team-a', 'prod', one.kubeconfig())
    clusterApi('team-b', 'prod', two.kubeconfig())
    const { lines, exit } = await fleet(['inspect', '--from', 'cluster-api', ...from, '-o', 'json'])
    const documents = lines()
    expect(
      documents
        .slice(0, 2)
        .map(({ cluster, source }) => `${cluster} ${source}`)
        .sort(),
    ).toEqual(['prod secret team-a/prod-kubeconfig', 'prod secret team-b/prod-kubeconfig'])
    expect(documents).toHaveLength(3)
    for (const line of documents.slice(0, 2))
      expect(secretsOf(line)).toEqual([line.source.includes('team-a') ? 'CN=one' : 'CN=two'])
    expect([one.foreignTokens, two.foreignTokens, exit]).toEqual([0, 0, 0])
    const scoped = await fleet(['inspect', '--from', 'cluster-api', '-n', 'team-a', ...from, '-o', 'json'])
    expect(scoped.lines()).toHaveLength(2)
  })

  test('are read from the cluster Secrets of Argo CD, without the programs that they name', async () => {
    const mark = join(folder, 'argo-ran')
    argocd('good', { bearerToken: two.token })
    argocd('exec', { execProviderConfig: { command: 'touch', args: [mark] } })
    argocd('aws', { awsAuthConfig: { clusterName: 'x' } })
    argocd('escape', { bearerToken: 'x' }, 'https://user:secret@127.0.0.1:1\u001b[2J')
    const { lines, stdout, exit } = await fleet(['inspect', '--from', 'argocd', ...from, '-o', 'json'])
    const byName = Object.fromEntries(lines().map((line) => [line.cluster, line]))
    expect(secretsOf(byName['argo-good']!)).toEqual(['CN=two'])
    for (const name of ['argo-exec', 'argo-aws'])
      expect(byName[name]).toMatchObject({ status: 'refused', error: { code: 'KCERT_KUBECONFIG_REFUSED' } })
    expect(byName['argo-escape']!.status).toBe('unreachable')
    expect(stdout).not.toContain('secret@')
    // No command can name the kubeconfig in an object.
    for (const { error } of lines()) expect(error ?? {}).not.toHaveProperty('next')
    expect(fs.existsSync(mark)).toBe(false)
    expect(exit).toBe(4)
  })

  test.each([
    ['a program', { exec: { command: 'touch', apiVersion: 'client.authentication.k8s.io/v1' } }, {}, 'exec'],
    ['a token file', { tokenFile: '/etc/hostname' }, {}, 'tokenFile'],
    [
      'a key',
      { 'client-key': '/etc/hostname', 'client-certificate': '/etc/hostname' },
      {},
      'client-certificate',
    ],
    [
      'an auth-provider',
      { 'auth-provider': { name: 'gcp', config: { 'cmd-path': 'touch' } } },
      {},
      'auth-provider',
    ],
    ['a CA file', {}, { 'certificate-authority': '/etc/hostname' }, 'certificate-authority'],
  ])('are refused if a Secret names %s of this machine', async (_, user, cluster, field) => {
    const config = JSON.parse(one.kubeconfig()) as { users: object[]; clusters: { cluster: object }[] }
    config.users = [{ name: 'u', user }]
    Object.assign(config.clusters[0]!.cluster, cluster)
    clusterApi('hostile', 'evil', JSON.stringify(config))
    const before = one.requests
    const { lines } = await fleet([
      'inspect',
      '--from',
      'cluster-api',
      '-n',
      'hostile',
      ...from,
      '-o',
      'json',
    ])
    expect(lines()[0]).toMatchObject({
      status: 'refused',
      error: { code: 'KCERT_KUBECONFIG_REFUSED', what: `secret hostile/evil-kubeconfig uses ${field}` },
    })
    expect(one.requests).toBe(before)
  })

  test('are read from ClusterProfiles with the programs of the provider file only', async () => {
    const credential = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: one.token },
    }
    const execConfig = {
      apiVersion: credential.apiVersion,
      command: 'sh',
      args: ['-c', `test -n "$KUBERNETES_EXEC_INFO" -a -z "$EVIL" && echo '${JSON.stringify(credential)}'`],
    }
    const providers = file('providers.json', JSON.stringify({ providers: [{ name: 'known', execConfig }] }))
    const cluster = { server: one.url, 'certificate-authority-data': caOf(one) }
    const extension = {
      name: 'multicluster.x-k8s.io/clusterprofiles/auth/exec/additional-envs',
      extension: { EVIL: 'x' },
    }
    profile('good', {
      accessProviders: [
        { name: 'other', cluster },
        { name: 'known', cluster: { ...cluster, extensions: [extension] } },
      ],
    })
    profile('earlier', { credentialProviders: [{ name: 'known', cluster }] })
    profile('unknown', { accessProviders: [{ name: 'unknown\u001b[2J', cluster }] })
    profile('empty', {})
    const args = ['inspect', '--from', 'clusterprofile', ...from, '-o', 'json']
    const { lines, exit } = await fleet([...args, '--clusterprofile-provider-file', providers])
    const byName = Object.fromEntries(lines().map((line) => [line.cluster, line]))
    for (const name of ['good', 'earlier']) expect(secretsOf(byName[name]!)).toEqual(['CN=one'])
    expect(byName.unknown!.error!.why).toContain('those of --clusterprofile-provider-file: known')
    expect(byName.empty!.error!.why).toMatch(/^its access providers: none;/)
    expect(exit).toBe(4)
  })

  test('fail the run if the management cluster does not answer or forbids it', async () => {
    const { stderr, exit } = await fleet([
      'inspect',
      '--from',
      'argocd',
      '--kubeconfig',
      management.writeKubeconfig(join(folder, 'nobody.conf'), { username: 'nobody' }),
    ])
    expect(stderr).toContain('KCERT_API_FORBIDDEN')
    expect(exit).toBe(6)
    expect((await fleet(['inspect', '--from', 'argocd,other', ...from])).stderr).toContain(
      'KCERT_USAGE: invalid --from "other"',
    )
  })
})

describe('kcert fleet probe and status', () => {
  let clusters: FakeApiServer[]
  const journal = (phase: number, event: string): string =>
    `${journalLine({ kind: 'phase', phase, event: event as 'started' }, Date.UTC(2026, 10, 1), undefined)}\n`
  const mirror = (server: FakeApiServer, name: string, text: string): void => {
    const place = { group: '', version: 'v1', resource: 'configmaps', namespace: 'kube-system' } as const
    server.put(place, { metadata: { name, namespace: 'kube-system' }, data: { 'journal.jsonl': text } })
  }

  beforeAll(async () => {
    clusters = await Promise.all([startApiServer(), startApiServer(), startApiServer(), startApiServer()])
    for (const [index, server] of clusters.entries())
      server.writeKubeconfig(join(folder, `real/${index}.conf`))
    mirror(clusters[0]!, 'kcert-rotation', journal(5, 'started'))
    mirror(clusters[1]!, 'kcert-rotation', journal(12, 'completed'))
    mirror(clusters[2]!, 'kcert-rotation', 'no journal \u001b[2J\n')
  })
  afterAll(async () => {
    for (const server of clusters) await server.close()
  })

  test('status shows the rotations of each cluster from the journal in it', async () => {
    const { lines, exit } = await fleet(['status', 'real', '-o', 'json'])
    const states = Object.fromEntries(lines().map((line) => [line.source, line.report]))
    expect(states).toMatchObject({
      'real/0.conf': {
        rotations: [{ rotation: 'ca', state: 'in-progress', phase: { number: 5, event: 'started' } }],
      },
      'real/1.conf': { rotations: [{ rotation: 'ca', state: 'finished' }] },
      'real/2.conf': { rotations: [{ rotation: 'ca', state: 'unknown' }] },
      'real/3.conf': { rotations: [] },
    })
    expect(exit).toBe(3)
    const { stdout } = await fleet(['status', 'real', '-o', 'prometheus'])
    expect(stdout).toContain(
      'kcert_rotation_phase{cluster="someone@fake",cluster_source="real/0.conf",rotation="ca",event="started"} 5\n',
    )
    expect(stdout.match(/^# TYPE kcert_rotation_in_progress /gm)).toHaveLength(1)
    const table = await fleet(['status', 'real'])
    expect(table.stdout).toMatch(
      /^someone@fake {2}ok {11}phase 5 started {2}.*real\/0.conf\n {4}ca: in progress, phase 5 started; last journal entry at 2026-11-01 00:00 UTC$/m,
    )
  })

  test('status refuses a damaged journal in one cluster, and shows the others', async () => {
    mirror(clusters[3]!, 'kcert-rotation', `${journal(1, 'started')}{"kind":"phase"}\n`)
    const { lines, exit } = await fleet(['status', 'real', '-o', 'json'])
    expect(lines().find(({ source }) => source === 'real/3.conf')).toMatchObject({
      status: 'refused',
      error: { code: 'KCERT_JOURNAL_DAMAGED' },
    })
    expect(lines()).toHaveLength(5)
    expect(exit).toBe(5)
  })

  test('probe probes the API server of each cluster with its own client certificate', async () => {
    const { lines } = await fleet(['probe', 'real', '-o', 'json'])
    const documents = lines().slice(0, -1)
    expect(documents.map(({ source }) => source).sort()).toEqual(
      [0, 1, 2, 3].map((index) => `real/${index}.conf`),
    )
    for (const { source, report } of documents) {
      const index = Number(/\d/.exec(source)?.[0])
      const [endpoint] = (report as unknown as { endpoints: { port: number; client: { verdict: string } }[] })
        .endpoints
      expect([endpoint!.port, endpoint!.client.verdict]).toEqual([clusters[index]!.port, 'accepted'])
    }
  })

  test('probe ends with a cluster that lists Nodes without an end', async () => {
    const [endless] = servers.filter(({ kind }) => kind === 'endless')
    const path = endless!.writeKubeconfig(join(folder, 'endless'))
    const { lines, exit } = await fleet(['probe', path, '--nodes', '-o', 'json', '--deadline', '3s'])
    expect(lines()[0]!.status).not.toBe('ok')
    expect(exit).toBe(4)
  })
})

test('writes one HTML page without scripts', async () => {
  const path = one.writeKubeconfig(join(folder, 'html'), 'a.conf', '<script>alert(1)</script>')
  const { stdout } = await fleet(['inspect', path, '-o', 'html'])
  expect(stdout).toMatch(/^<!doctype html>/)
  expect(stdout).not.toContain('<script')
  expect(stdout).toContain('&lt;script&gt;alert(1)')
})

test('ends at Ctrl-C with the results so far', async () => {
  const controller = new AbortController()
  const [hanging] = servers.filter(({ kind }) => kind === 'hang')
  const paths = [one.writeKubeconfig(join(folder, 'stop')), hanging!.writeKubeconfig(join(folder, 'stop'))]
  setTimeout(() => controller.abort(), 3_000)
  const session = await kcertBeside(['fleet', 'inspect', ...paths, '-o', 'json'], {
    cwd: folder,
    signal: controller.signal,
  })
  const [first, second] = session.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
  expect(first).toMatchObject({ cluster: 'one', status: 'ok' })
  expect(second!.error!.why).toBe('the run was interrupted')
  expect(session.exit).toBe(4)
})

function isRunning(pid: number): boolean {
  try {
    return !fs.readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return false
  }
}
