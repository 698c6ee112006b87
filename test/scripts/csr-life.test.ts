import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { requestsKey } from './cluster-session.ts'
import { kcert, kcertBeside, type Session } from './program.ts'
import { pause, RequestLife, user } from './request-life.ts'
import { violations } from './schemas.ts'

// Whole sessions of the requester's and reader's commands.

const life = new RequestLife('csr-life')

test('submits a request with the usages of its signer, lists, explains, approves and fetches it with its key', async () => {
  life.makeRequest('--org', 'dev')
  const submitted = await life.run('csr', 'submit', life.at('a.csr'), ...user)
  expect(submitted).toMatchObject({ exit: 0, stderr: '' })
  expect(submitted.stdout).toContain(`kcert csr approve ${life.name}`)
  expect(life.stored?.spec.usages).toEqual(['digital signature', 'client auth'])

  const listed = await life.run('csr', 'list', '--pending')
  expect(listed.stdout).toMatch(
    new RegExp(`${life.name} .*kubernetes-admin +Pending +${life.name} \\(dev\\)`),
  )
  const stuck = await life.run('csr', 'explain', `csr/${life.name}`)
  expect(stuck.exit).toBe(3)
  expect(stuck.stdout).toContain('waits-for-a-person')

  expect((await life.run('csr', 'check', life.name)).stdout).toContain('requester')
  life.decide('Approved')
  const fetched = await life.run(
    'csr',
    'fetch',
    life.name,
    '--wait',
    '10s',
    '--key',
    life.at('key.pem'),
    '--out',
    life.at('a.crt'),
  )
  expect(fetched).toMatchObject({ exit: 0 })
  expect(fetched.stdout).toContain('check key          ok')
  life.expectPair()

  const described = await life.run('csr', 'describe', life.name)
  expect(described.exit).toBe(0)
  expect(described.stdout).toMatch(/serial number +[0-9a-f]+/)
  expect(described.stdout).toContain('an hour after the approval, once issued')
  expect((await life.run('csr', 'explain', life.name)).exit).toBe(0)
})

test('submits a manifest of several requests at once, and does nothing the second time', async () => {
  const manifests = ['x', 'y'].map((suffix) =>
    kcert([
      'csr',
      'create',
      '--user',
      `${life.name}-${suffix}`,
      '--key-out',
      life.at(`${suffix}.pem`),
      '-o',
      'manifest',
    ]),
  )
  const text = manifests.map(({ stdout }) => stdout).join('---\n')
  const submit = () =>
    kcertBeside(['csr', 'submit', '-', '-o', 'json'], {
      stdin: text,
      env: life.env,
    })
  const outcomesOf = ({ stdout }: Session): string[] =>
    (JSON.parse(stdout) as { submissions: { outcome: string }[] }).submissions.map(({ outcome }) => outcome)
  expect(outcomesOf(await submit())).toEqual(['created', 'created'])
  expect(outcomesOf(await submit())).toEqual(['present', 'present'])
})

test('does not send a request that would fail permanently, unless it is forced', async () => {
  life.makeRequest()
  const refused = await life.run('csr', 'submit', life.at('a.csr'), ...user, '--usage', 'server auth')
  expect(refused.exit).toBe(3)
  expect(refused.stderr).toContain('KCERT_CSR_SIGNER_REFUSED')
  expect(refused.stderr).toContain('fix: use --usage "digital signature" --usage "client auth"')
  expect(life.stored).toBeUndefined()
  const forced = await life.run(
    'csr',
    'submit',
    life.at('a.csr'),
    ...user,
    '--usage',
    'server auth',
    '--force',
  )
  expect(forced.exit).toBe(0)
  expect(forced.stderr).toContain('note: sent anyway')
  life.decide('Approved')
  const failed = await life.run('csr', 'fetch', life.name, '--wait', '10s', '--out', life.at('a.crt'))
  expect(failed.exit).toBe(3)
  expect(failed.stderr).toContain('failed: its signer refused it')
  expect((await life.run('csr', 'explain', life.name)).stdout).toContain('signer-refused')
})

test('a dry run contacts the API server and leaves nothing', async () => {
  life.makeRequest()
  const dry = await life.run('csr', 'submit', life.at('a.csr'), ...user, '--dry-run')
  expect(dry.stdout).toContain('would be created')
  expect(life.stored).toBeUndefined()
})

test('reports a conflict and its differences when another request has the name', async () => {
  life.makeRequest()
  await life.run('csr', 'submit', life.at('a.csr'), ...user)
  expect(
    kcert(['csr', 'create', '--cn', life.name, '--key-out', life.at('b.pem'), '--out', life.at('b.csr')])
      .exit,
  ).toBe(0)
  const taken = await life.run('csr', 'submit', life.at('b.csr'), ...user)
  expect(taken.exit).toBe(3)
  expect(taken.stderr).toContain('KCERT_API_CONFLICT')
  expect(taken.stderr).toContain('it is for another key')
})

test('refuses a certificate for another key', async () => {
  life.makeRequest()
  await life.run('csr', 'submit', life.at('a.csr'), ...user)
  life.decide('Approved')
  expect(kcert(['key', 'generate', '--out', life.at('b.pem')]).exit).toBe(0)
  const wrong = await life.run(
    'csr',
    'fetch',
    life.name,
    '--wait',
    '10s',
    '--key',
    life.at('b.pem'),
    '--out',
    life.at('a.crt'),
  )
  expect(wrong.exit).toBe(3)
  expect(wrong.stderr).toContain('KCERT_CERTIFICATE_UNFIT')
  expect(existsSync(life.at('a.crt'))).toBe(false)
})

test('prints a Secret only with --print-key, and writes it to a file with mode 0600', async () => {
  life.makeRequest('--dns', 'my-svc')
  await life.run('csr', 'submit', life.at('a.csr'), ...user)
  life.decide('Approved')
  const fetch = (...more: string[]) =>
    life.run(
      'csr',
      'fetch',
      life.name,
      '--wait',
      '10s',
      '--key',
      life.at('key.pem'),
      '--secret',
      'server.my-ns',
      '-o',
      'manifest',
      ...more,
    )
  const refused = await fetch()
  expect(refused.exit).toBe(5)
  expect(refused.stderr).toContain('KCERT_KEY_EXPOSED')
  expect(refused.stdout).toBe('')
  const filed = await fetch('--configmap', 'ca.my-ns', '--out', life.at('secret.yaml'))
  expect(filed).toMatchObject({ exit: 0, stdout: '' })
  expect(statSync(life.at('secret.yaml')).mode & 0o777).toBe(0o600)
  const printed = await fetch('--configmap', 'ca.my-ns', '--print-key')
  expect(printed.stdout).toBe(readFileSync(life.at('secret.yaml'), 'utf8'))
  expect(printed.stdout).toMatch(
    /kind: Secret[\s\S]*type: kubernetes.io\/tls[\s\S]*---[\s\S]*kind: ConfigMap/,
  )
})

test('creates key, request, object, certificate and a kubeconfig that authenticates the user, in one run', async () => {
  const session = await life.runApproved(...life.request('--wait', '30s'))
  expect(session).toMatchObject({ exit: 0 })
  expect(session.stderr).toMatch(new RegExp(`submitted as ${life.name}[^]*issued[^]*kubeconfig .* written`))
  for (const file of ['key.pem', 'a.conf']) expect(statSync(life.at(file)).mode & 0o777).toBe(0o600)
  const asUser = await kcertBeside(['csr', 'list'], { env: { KUBECONFIG: life.at('a.conf') } })
  expect(asUser.exit).toBe(6)
  expect(asUser.stderr).toContain(`User "${life.name}" cannot list`)

  const again = await life.run(...life.request())
  expect(again).toMatchObject({ exit: 0 })
  expect(again.stderr).toContain('exists already')
})

test('continues with the same key and object after --wait timed out', async () => {
  const over = await life.run(...life.request('--wait', '1s'))
  expect(over.exit).toBe(4)
  expect(over.stderr).toContain(`waiting for an approver: kcert csr approve ${life.name}`)
  expect(over.stderr).toContain('KCERT_CSR_WAIT_OVER')
  expect(over.stderr).toContain(`next: kcert csr explain ${life.name}`)
  const key = readFileSync(life.at('key.pem'), 'utf8')
  const uid = life.stored?.metadata.uid
  life.decide('Approved')
  expect((await life.run(...life.request('--wait', '30s'))).exit).toBe(0)
  expect(readFileSync(life.at('key.pem'), 'utf8')).toBe(key)
  expect(life.stored?.metadata.uid).toBe(uid)
})

test('finds a request whose file was lost by its key', async () => {
  await life.run(...life.request('--wait', '1s'))
  rmSync(life.at('a.csr'))
  life.decide('Approved')
  const session = await life.run(...life.request('--wait', '30s'))
  expect(session).toMatchObject({ exit: 0 })
  expect(session.stderr).toContain('exists already on the cluster')
})

// The state after a kill: the files up to some step, with or without the object. The next run continues from there.
test.each([
  ['the key alone', ['a.csr', 'a.crt', 'a.conf'], false],
  ['key and request', ['a.crt', 'a.conf'], false],
  ['the object as well', ['a.crt', 'a.conf'], true],
  ['all but the kubeconfig', ['a.conf'], true],
  ['all but the kubeconfig, and the object is removed', ['a.conf'], false],
] as const)('a run that was killed and left %s is gone on with', async (_what, lost, keepsObject) => {
  await life.runApproved(...life.request('--wait', '30s'))
  const key = readFileSync(life.at('key.pem'), 'utf8')
  for (const file of lost) rmSync(life.at(file))
  if (!keepsObject) life.server.remove(requestsKey, life.name)
  const again = life.request('--wait', '30s')
  const isResubmitted = life.stored === undefined && lost.length > 1
  const session = await (isResubmitted ? life.runApproved(...again) : life.run(...again))
  expect(session).toMatchObject({ exit: 0 })
  expect(readFileSync(life.at('key.pem'), 'utf8')).toBe(key)
  for (const file of lost) expect(existsSync(life.at(file))).toBe(true)
  life.expectPair()
})

test('loses nothing on Ctrl-C', async () => {
  const stop = new AbortController()
  const before = life.server.calls.length
  const running = kcertBeside(life.request('--wait', '1m'), {
    env: life.env,
    signal: stop.signal,
  })
  while (life.stored === undefined) await pause()
  // It watches by now, or is about to do so.
  while (!life.server.calls.slice(before).some((call) => call.verb === 'watch')) await pause()
  stop.abort()
  const { exit, stderr } = await running
  // Ended by the signal, which a shell reports as 130.
  expect(exit).toBeNull()
  expect(stderr).toContain('interrupted: nothing is lost; run the same command to continue')
  life.decide('Approved')
  expect((await life.run(...life.request('--wait', '30s'))).exit).toBe(0)
})

test('csr request --dry-run prints the object that would be sent, and writes nothing', async () => {
  const { stdout, exit } = await life.run(...life.request('--dry-run', '-o', 'yaml'))
  expect(exit).toBe(0)
  expect(stdout).toMatch(/^apiVersion: certificates.k8s.io\/v1\nkind: CertificateSigningRequest\n/)
  expect(stdout).toContain(`name: ${life.name}`)
  expect(life.stored).toBeUndefined()
  for (const file of ['key.pem', 'a.csr', 'a.crt', 'a.conf']) expect(existsSync(life.at(file))).toBe(false)
  await life.run(...life.request('--wait', '1s'))
  const again = await life.run(...life.request('--dry-run', '-o', 'json'))
  expect(JSON.parse(again.stdout)).toMatchObject({ spec: { request: life.stored?.spec.request } })
})

test('csr list --watch prints the list repeatedly until Ctrl-C', async () => {
  await life.run(...life.request('--wait', '1s'))
  const stop = new AbortController()
  const before = life.server.calls.length
  const running = kcertBeside(['csr', 'list', '-w', '--every', '0.05s', '--no-headers'], {
    env: life.env,
    signal: stop.signal,
  })
  while (life.server.calls.slice(before).filter(({ verb }) => verb === 'list').length < 3) await pause()
  stop.abort()
  const { stdout } = await running
  const rows = stdout.trimEnd().split('\n')
  expect(rows.filter((row) => row.includes(life.name)).length).toBeGreaterThan(1)
  expect(stdout).not.toContain('CONDITION')
})

test('csr list -o wide shows the requested duration, the key and the groups', async () => {
  await life.run(...life.request('--wait', '1s', '--expiration-seconds', '86400'))
  const { stdout } = await life.run('csr', 'list', '-o', 'wide')
  const [heading = ''] = stdout.split('\n')
  expect(heading).toMatch(/REQUESTEDDURATION .* KEY +GROUPS$/)
  expect(stdout).toMatch(/ 1d +ECDSA P-256 +system:masters/)
})

test('ends the wait on a denial, and prints the reason', async () => {
  await life.run(...life.request('--wait', '1s'))
  life.decide('Denied', 'NotToday', 'ask Bob first')
  const denied = await life.run(...life.request('--wait', '30s'))
  expect(denied.exit).toBe(3)
  expect(denied.stderr).toContain('is denied')
  expect(denied.stderr).toContain('why: NotToday: ask Bob first')
  expect((await life.run('csr', 'explain', life.name)).stdout).toContain('NotToday: ask Bob first')
})

test('refuses other SANs than those of an earlier run with the same files', async () => {
  await life.run(...life.request('--wait', '1s'))
  const other = await life.run(...life.request('--org', 'dev', '--wait', '1s'))
  expect(other.exit).toBe(5)
  expect(other.stderr).toContain('exists already, with other content')
})

test('prints reports that are valid against their schemas, without private keys', async () => {
  const { stdout: requested } = await life.runApproved(...life.request('--wait', '30s', '-o', 'json'))
  const documents = [
    ['FetchedCertificate', requested],
    ['FetchedCertificate', (await life.run('csr', 'fetch', life.name, '-o', 'json')).stdout],
    ['RequestList', (await life.run('csr', 'list', '-o', 'json')).stdout],
    ['RequestDescriptions', (await life.run('csr', 'describe', life.name, 'absent', '-o', 'json')).stdout],
    ['RequestExplanation', (await life.run('csr', 'explain', life.name, '-o', 'json')).stdout],
    [
      'SubmittedRequests',
      (
        await life.run(
          'csr',
          'submit',
          life.at('a.csr'),
          '--name',
          `${life.name}-again`,
          ...user,
          '-o',
          'json',
        )
      ).stdout,
    ],
  ] as const
  for (const [kind, text] of documents) {
    expect(violations(kind, JSON.parse(text)), kind).toEqual([])
    expect(text).not.toMatch(/PRIVATE KEY/)
  }
})

test('escapes hostile names on a terminal', async () => {
  const object = {
    metadata: { name: 'evil\u001b[31m\u202e' },
    spec: { request: 'bm90aGluZw==', signerName: 'example.com/a\u0007', usages: ['client auth'] },
  }
  life.server.put(requestsKey, object)
  for (const args of [['list'], ['list', '-o', 'name'], ['list', '-o', 'json']]) {
    const { stdout } = await life.run('csr', ...args)
    expect(stdout).not.toMatch(/[\u0007\u001b\u202e]/)
  }
  life.server.remove(requestsKey, object.metadata.name)
})

test('reports a name that is neither a file nor an object as an error', async () => {
  const { exit, stderr } = await life.run('csr', 'check', 'no-such-thing')
  expect(exit).toBe(2)
  expect(stderr).toContain('no-such-thing does not exist, and the cluster has no request of this name')
})

test('check refuses a request with a byte order mark or CR line ends, and submit does not send it', async () => {
  life.makeRequest()
  const pem = readFileSync(life.at('a.csr'), 'utf8')
  for (const [text, words] of [
    [`\ufeff${pem}`, 'a byte order mark'],
    [pem.replaceAll('\n', '\r'), 'CR line ends'],
  ] as const) {
    const options = { stdin: text, env: life.env }
    const checked = kcert(['csr', 'check', '-', ...user, '--usage', 'client auth'], options)
    expect(checked.exit).toBe(3)
    expect(checked.stdout).toContain(`the API server cannot find the PEM block in a text with ${words}`)
    const submitted = await kcertBeside(['csr', 'submit', '-', ...user, '--usage', 'client auth'], options)
    expect(submitted.exit).toBe(3)
    expect(submitted.stderr).toContain('KCERT_CSR_SIGNER_REFUSED')
    expect(submitted.stderr).toContain(words)
  }
  expect(life.stored).toBeUndefined()
})
