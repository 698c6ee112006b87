import { generateKeyPairSync } from 'node:crypto'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { startApiServer } from '../fakes/api-server.ts'
import { auditLine, certificateId, serviceAccountKey, tokenOf, type Use } from './audit-events.ts'
import { kcert, kcertBeside } from './program.ts'
import { violations } from './schemas.ts'
import { client, folderWith, type Issued, issued } from './small-pki.ts'

// Whole sessions of `kcert audit`, with credentials in every place where kcert searches for them.

/** The names of both CAs are equal, as after a rotation that keeps the name. Only the keys differ. */
const caWith = (subjectKeyId: string): Issued =>
  issued({
    ...{ subject: { commonName: 'kubernetes' }, subjectKeyId, notAfter: new Date('2036-01-01T00:00:00Z') },
    ...{ basicConstraints: { ca: true }, keyUsage: ['digitalSignature', 'keyCertSign'] },
  })
const [oldCa, newCa] = [caWith('aa'), caWith('bb')]
const oldKey = serviceAccountKey()
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const secretOf = (name: string, data: Readonly<Record<string, string>>, type = 'Opaque') => ({
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'shop' }, type },
  data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)])),
})
const kubeconfigOf = (user: object): string =>
  JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'x', clusters: [], contexts: [] },
    users: [{ name: 'x', user }],
  })

interface Reported {
  readonly id: string
  readonly status?: string
  readonly users: string[]
  readonly sourceIPs: string[]
  readonly requests: number
  readonly lastUsed: string
  readonly known?: { readonly subject: string; readonly places: string[] }
}

function reportOf(args: readonly string[], stdin = '') {
  const { stdout, stderr, exit } = kcert(['audit', ...args, '-o', 'json'], { stdin })
  const report = JSON.parse(stdout === '' ? '{}' : stdout) as {
    conclusion?: string
    credentials: Reported[]
    incomplete: string[]
    notes: string[]
    withoutCredentialId: { username: string; requests: number }[]
  }
  if (stdout !== '') expect(violations('AuditReport', report)).toEqual([])
  return { ...report, stderr, exit }
}

test('finds 20 clients with old credentials among 5,000 requests, and reports no other', () => {
  const certificates = Object.fromEntries(
    [
      ...['embedded', 'by-path', 'nested', 'der', 'kubelet', 'tls-secret', 'secret-kubeconfig', 'configmap'],
      ...['csr-object', 'csr-in-log', 'issuance-log', 'rotated', 'watching', 'impersonating'],
    ].map((name) => [name, client(name, oldCa)]),
  ) as Record<string, Issued>
  const pemOf = (name: string): string => certificates[name]!.pem
  const keyPemOf = (name: string): string => certificates[name]!.keyPem
  const tokenUser = (name: string): string => `system:serviceaccount:shop:${name}`
  const old = (name: string, claims: object = { jti: name }): string =>
    tokenOf(`shop:${name}`, oldKey, claims)
  const legacy = { 'kubernetes.io/serviceaccount/secret.name': 'legacy-secret' }
  const current = client('current', newCa)
  const known = folderWith({
    'admin.conf': kubeconfigOf({ 'client-certificate-data': base64(pemOf('embedded')) }),
    'path.conf': kubeconfigOf({ 'client-certificate': 'by-path.pem' }),
    'by-path.pem': pemOf('by-path'),
    'a/b/c/nested.crt': pemOf('nested') + oldCa.pem,
    'der.crt': certificates.der!.der,
    'var/lib/kubelet/pki/kubelet-client-current.pem': pemOf('kubelet') + keyPemOf('kubelet'),
    'secrets.json': JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'List' },
      items: [
        secretOf(
          'tls',
          { 'tls.crt': pemOf('tls-secret'), 'tls.key': keyPemOf('tls-secret') },
          'kubernetes.io/tls',
        ),
        secretOf('conf', {
          config: kubeconfigOf({ 'client-certificate-data': base64(pemOf('secret-kubeconfig')) }),
        }),
        secretOf('legacy-secret', { token: old('legacy', legacy) }, 'kubernetes.io/service-account-token'),
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'c', namespace: 'shop' },
          data: { 'x.pem': pemOf('configmap') },
        },
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'd', namespace: 'shop' },
          data: { 'app.ini': `[api]\ntoken=${old('in-settings')}\n` },
        },
        {
          ...{
            apiVersion: 'certificates.k8s.io/v1',
            kind: 'CertificateSigningRequest',
            metadata: { name: 'csr-object' },
          },
          ...{ spec: {}, status: { certificate: base64(pemOf('csr-object')) } },
        },
      ],
    }),
    'rotated.pem': pemOf('rotated'),
    'watching.pem': pemOf('watching'),
    'impersonating.pem': pemOf('impersonating'),
    'token.conf': kubeconfigOf({ token: old('in-kubeconfig') }),
    'file.conf': kubeconfigOf({ tokenFile: 'by-file' }),
    'by-file': old('by-file'),
    'raw.token': `${old('raw')}\n`,
    'current.pem': current.pem,
    'issued.jsonl': `${JSON.stringify({
      ...{ serialNumber: '12', subject: 'CN=issuance-log', issuer: 'CN=kubernetes', authorityKeyId: 'aa' },
      fingerprintSha256: certificateId(certificates['issuance-log']!).slice('X509SHA256='.length),
    })}\n`,
  })
  const ids = Object.fromEntries(
    Object.entries(certificates).map(([name, one]) => [name, certificateId(one)]),
  )
  const uses: Use[] = [
    ...Object.keys(certificates)
      .filter((name) => !['rotated', 'watching', 'impersonating'].includes(name))
      .map((name) => ({ username: name, credential: ids[name] })),
    { username: 'watching', credential: ids.watching, stage: 'ResponseStarted' },
    {
      username: 'impersonating',
      credential: ids.impersonating,
      fields: { impersonatedUser: { username: 'ann' } },
    },
    ...['in-kubeconfig', 'by-file', 'raw', 'in-settings'].map((name) => ({
      username: tokenUser(name),
      credential: `JTI=${name}`,
    })),
    {
      username: tokenUser('legacy'),
      fields: {
        annotations: {
          'authentication.k8s.io/legacy-token': tokenUser('legacy'),
          'authentication.k8s.io/legacy-token-manual-secret': 'legacy-secret',
        },
      },
    },
    { username: tokenUser('issued-before'), credential: 'JTI=issued-before' },
  ]
  const issuing = (jti: string, at: string): string =>
    auditLine({
      ...{ username: 'system:node:w1', credential: certificateId(current), at },
      fields: {
        verb: 'create',
        annotations: { 'authentication.kubernetes.io/issued-credential-id': `JTI=${jti}` },
      },
    })
  const noise = Array.from({ length: 5000 }, (_, index) => {
    const jti = `pod-${index % 500}`
    if (index < 500) return issuing(jti, '2026-11-25T09:30:00.000000Z')
    // Each line mentions an old credential where it is none.
    const mention = `{"authentication.kubernetes.io/credential-id":["${ids.embedded}"]}`
    const fields = {
      userAgent: `curl ${mention}`,
      impersonatedUser: {
        username: 'x',
        extra: { 'authentication.kubernetes.io/credential-id': ['JTI=impersonated'] },
      },
      requestObject: {
        data: { mention },
        user: { extra: { 'authentication.kubernetes.io/credential-id': ['JTI=object'] } },
      },
    }
    return index % 2 === 0
      ? auditLine({ username: 'current', credential: certificateId(current), fields })
      : auditLine({ username: 'system:serviceaccount:shop:pod', credential: `JTI=${jti}`, fields })
  })
  const signing = auditLine({
    ...{ username: 'system:kube-controller-manager', credential: certificateId(current) },
    fields: {
      ...{ level: 'Request', verb: 'update' },
      objectRef: {
        apiGroup: 'certificates.k8s.io',
        resource: 'certificatesigningrequests',
        subresource: 'status',
        name: 'csr-7',
      },
      requestObject: { status: { certificate: base64(pemOf('csr-in-log')) } },
    },
  })
  const before = [
    issuing('issued-before', '2026-11-25T08:00:00.000000Z'),
    auditLine({ username: 'rotated', credential: ids.rotated }),
  ]
  const planted = uses.map(auditLine)
  // Spread over the log: one after each 200 lines.
  const log = noise.flatMap((line, index) =>
    index % 200 === 7 ? [line, planted[(index - 7) / 200] ?? ''] : [line],
  )
  const logs = folderWith({
    'audit.log': [...log, signing].join(''),
    'audit-2026-11-25T08-59-59.000.log.gz': gzipSync(before.join('')),
    // An unrelated log in the same folder.
    'kubelet.log': 'I1125 10:00:00 server.go:1] "hello"\n'.repeat(5),
  })
  const flags = ['--ca', join(known, 'old-ca.crt'), '--sa-key', join(known, 'old-sa.pub'), '--known', known]
  writeFileSync(join(known, 'old-ca.crt'), oldCa.pem)
  writeFileSync(join(known, 'old-sa.pub'), oldKey.pem)
  const report = reportOf([logs, ...flags, '--new-key-since', '2026-11-25T09:00:00Z'])
  const expected = [
    ...Object.keys(certificates),
    ...['in-kubeconfig', 'by-file', 'raw', 'in-settings', 'legacy', 'issued-before'].map(tokenUser),
  ]
  expect(expected).toHaveLength(20)
  expect(report.credentials.flatMap(({ users }) => users).sort()).toEqual(expected.toSorted())
  expect(new Set(report.credentials.map(({ status }) => status))).toEqual(new Set(['old']))
  expect(report.conclusion).toBe('used')
  expect(report.incomplete).toEqual([])
  expect(report.exit).toBe(3)
})

const one = client('ann', oldCa)
const line = (changes: Partial<Use> = {}): string =>
  auditLine({ username: 'ann', credential: certificateId(one), ...changes })
const filesWith = (log: string | Uint8Array): string =>
  folderWith({ 'audit.log': log, 'old-ca.crt': oldCa.pem, 'ann.pem': one.pem })

test('skips a token that the key of its key ID did not sign', () => {
  const [other, newKey] = [serviceAccountKey(), serviceAccountKey()]
  const forged = (keyId: string, jti: string): string =>
    tokenOf('shop:cart', { keyId, privateKey: other.privateKey }, { jti })
  const use = (jti: string): string =>
    auditLine({ username: 'system:serviceaccount:shop:cart', credential: `JTI=${jti}` })
  const at = folderWith({
    'audit.log': ['a', 'b', 'c', 'd'].map(use).join(''),
    'old-sa.pub': oldKey.pem,
    'known/sa.pub': newKey.pem,
    'known/a': forged(oldKey.keyId, 'a'),
    'known/b.json': JSON.stringify(secretOf('b', { token: forged(newKey.keyId, 'b') })),
    'known/c.conf': kubeconfigOf({ token: tokenOf('shop:cart', oldKey, { jti: 'c' }) }),
    'known/d.json': JSON.stringify(
      secretOf('d', { config: kubeconfigOf({ token: tokenOf('shop:cart', newKey, { jti: 'd' }) }) }),
    ),
  })
  const report = reportOf([
    ...[join(at, 'audit.log'), '--sa-key', join(at, 'old-sa.pub'), '--known', join(at, 'known'), '--all'],
  ])
  expect(report.credentials.map(({ id, status }) => [id, status]).sort()).toEqual([
    ['JTI=a', 'unknown'],
    ['JTI=b', 'unknown'],
    ['JTI=c', 'old'],
    ['JTI=d', 'current'],
  ])
  expect(report.notes).toEqual([
    expect.stringMatching(/^tokens that are skipped, .* did not sign them: .*known\/a.*, .*Secret shop\/b /),
  ])
})

test('shows who used an old certificate, from where, when and how often, and where it was found', () => {
  const at = filesWith(line({ at: '2026-11-25T09:00:00Z' }) + line() + line({ stage: 'RequestReceived' }))
  const { stdout, exit } = kcert([
    'audit',
    join(at, 'audit.log'),
    '--ca',
    join(at, 'old-ca.crt'),
    '--known',
    join(at, 'ann.pem'),
  ])
  expect(exit).toBe(3)
  expect(stdout).toContain('1 old credential used (3 events read)')
  expect(stdout).toMatch(
    /^old {2,}X509SHA256=[0-9a-f]{16} {2,}ann {2,}192\.0\.2\.\d+, .* 2026-11-25 10:00 {2,}2 {2,}\S+ann\.pem$/m,
  )
})

test('counts only requests since a time', () => {
  const at = filesWith(line({ at: '2026-11-25T09:00:00Z' }) + line())
  const flags = [join(at, 'audit.log'), '--ca', join(at, 'old-ca.crt'), '--known', join(at, 'ann.pem')]
  expect(reportOf([...flags, '--since', '2026-11-25T09:30:00Z']).credentials).toMatchObject([{ requests: 1 }])
  const later = reportOf([...flags, '--since', '2026-11-25T11:00:00Z'])
  expect(later).toMatchObject({ conclusion: 'unknown', credentials: [], exit: 3 })
  expect(later.incomplete).toEqual(['the logs contain no event since 2026-11-25T11:00:00Z'])
})

test('does not conclude from logs that begin after --since', () => {
  const at = filesWith(auditLine({ username: 'bob', credential: certificateId(client('bob', newCa)) }))
  const report = reportOf([
    join(at, 'audit.log'),
    '--ca',
    join(at, 'old-ca.crt'),
    '--since',
    '2026-11-24T00:00:00Z',
  ])
  expect(report.incomplete).toEqual([
    expect.stringContaining(
      'the logs contain no event from 2026-11-24T00:00:00Z to 2026-11-25T10:00:00Z, from ',
    ),
  ])
})

test('is satisfied if only certificates of other CAs were used', () => {
  const bob = client('bob', newCa)
  const at = folderWith({
    'audit.log': auditLine({ username: 'bob', credential: certificateId(bob) }),
    'old-ca.crt': oldCa.pem,
    'bob.pem': bob.pem,
  })
  const flags = [join(at, 'audit.log'), '--ca', join(at, 'old-ca.crt'), '--known', join(at, 'bob.pem')]
  expect(reportOf(flags)).toMatchObject({ conclusion: 'not-used', credentials: [], exit: 0 })
  expect(reportOf([...flags, '--all']).credentials).toMatchObject([{ status: 'current', users: ['bob'] }])
})

test('names a credential as unknown that is in none of the files', () => {
  const at = filesWith(line())
  const report = reportOf([join(at, 'audit.log'), '--ca', join(at, 'old-ca.crt')])
  expect(report).toMatchObject({
    conclusion: 'unknown',
    credentials: [{ status: 'unknown', users: ['ann'] }],
    exit: 3,
  })
})

test('lists every credential without a question', () => {
  const report = reportOf(
    ['-'],
    line() + auditLine({ username: 'system:serviceaccount:a:b', credential: 'JTI=1' }),
  )
  expect(report.credentials.map(({ users, status }) => [users, status])).toEqual([
    [['ann'], undefined],
    [['system:serviceaccount:a:b'], undefined],
  ])
  expect(report).not.toHaveProperty('conclusion')
  expect(report.exit).toBe(0)
})

test('says that certificates have no credential ID before Kubernetes 1.32', () => {
  const at = filesWith(auditLine({ username: 'ann' }) + auditLine({ username: 'system:apiserver' }))
  const report = reportOf([join(at, 'audit.log'), '--ca', join(at, 'old-ca.crt')])
  expect(report.incomplete).toEqual([
    expect.stringMatching(/^no request with a certificate has a credential ID.*: ann; .*1\.32$/),
  ])
  expect(report.withoutCredentialId).toHaveLength(2)
  expect(report.exit).toBe(3)
})

test('reads the rest of a log with broken lines, and does not conclude from it', () => {
  const at = filesWith(
    `${line()}{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":\n\0\0\0\n${line()}{"kind":"Pod"}\n`,
  )
  const report = reportOf([join(at, 'audit.log'), '--ca', join(at, 'old-ca.crt')])
  expect(report.credentials).toMatchObject([{ requests: 2 }])
  expect(report.incomplete).toEqual([
    expect.stringMatching(/2 lines without a readable event, the first at line 2$/),
    expect.stringMatching(/1 line with something else than an event of audit\.k8s\.io$/),
  ])
})

test('ignores the line that the API server is writing, and not one where an older log was cut', () => {
  const bob = client('bob', newCa)
  const flags = (log: string): string[] => {
    const at = folderWith({ 'audit.log': log, 'old-ca.crt': oldCa.pem, 'bob.pem': bob.pem })
    return [join(at, 'audit.log'), '--ca', join(at, 'old-ca.crt'), '--known', join(at, 'bob.pem')]
  }
  const logAt = (time: string): string =>
    auditLine({ username: 'bob', credential: certificateId(bob), at: time }) + line().slice(0, 300)
  const report = reportOf(flags(logAt(new Date().toISOString())))
  expect(report).toMatchObject({ conclusion: 'not-used', exit: 0 })
  expect(report.notes).toEqual([
    expect.stringContaining('the last line is not complete: it was being written'),
  ])
  const cut = reportOf(flags(logAt('2026-11-25T10:00:00Z')))
  expect(cut).toMatchObject({ conclusion: 'unknown', notes: [], exit: 3 })
  expect(cut.incomplete).toEqual([expect.stringContaining('the last line is not complete: the log was cut')])
})

test('does not conclude from a folder with lists of events, or with a link to a folder', () => {
  const bob = client('bob', newCa)
  const event = auditLine({ username: 'bob', credential: certificateId(bob) })
  const list = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[${line().trim()}]}`
  const incompleteOf = (files: Record<string, string>, link?: string): string[] => {
    const at = folderWith({ 'audit.log': event, ...files })
    if (link !== undefined) symlinkSync(link, join(at, 'cp2'))
    const { conclusion, incomplete, exit } = reportOf([at, '--ca', ca, '--known', known])
    expect([conclusion, exit]).toEqual(incomplete.length === 0 ? ['not-used', 0] : ['unknown', 3])
    return incomplete
  }
  const known = join(folderWith({ 'bob.pem': bob.pem }), 'bob.pem')
  const ca = join(folderWith({ 'old-ca.crt': oldCa.pem }), 'old-ca.crt')
  expect(incompleteOf({ 'kubelet.log': 'hello\n' })).toEqual([])
  for (const text of [list, `${list}\n`, JSON.stringify(JSON.parse(list), null, 2)])
    expect(incompleteOf({ 'events.json': text })).toEqual([
      expect.stringMatching(/events\.json: skipped, because its lines are not events/),
    ])
  expect(incompleteOf({}, folderWith({ 'audit.log': line() }))).toEqual([
    expect.stringMatching(/cp2: it is a folder: name a file, a folder, or standard input$/),
  ])
})

test('keeps what it read of a damaged compressed log, and does not conclude from it', () => {
  const lines = Array.from({ length: 3000 }, () => line()).join('')
  const whole = gzipSync(lines)
  const at = filesWith(whole.subarray(0, whole.length - 2000))
  const report = reportOf([join(at, 'audit.log')])
  expect(report.credentials[0]!.requests).toBeGreaterThan(100)
  expect(report.incomplete).toEqual([
    expect.stringMatching(/reading stopped after line \d+: unexpected end of file$/),
  ])
  expect(report.exit).toBe(3)
})

test('does not take another file for an audit log', () => {
  const at = filesWith('I1125 10:00:00 server.go:1] "hello"\n'.repeat(5000))
  const report = reportOf([join(at, 'audit.log')])
  expect(report.incomplete[0]).toContain('its first lines are not events of audit.k8s.io')
})

test('reads a file that is named twice once', () => {
  const at = filesWith(line())
  expect(reportOf([at, join(at, 'audit.log'), at]).credentials).toMatchObject([{ requests: 1 }])
})

test('reads logs on the nodes of an inventory', () => {
  const node = { name: 'cp1', role: 'control-plane', addresses: ['192.0.2.1'], layout: 'kubeadm' }
  const inventory = (access: object, ...others: object[]): string =>
    JSON.stringify({ apiVersion: 'kcert/v1', kind: 'Inventory', nodes: [{ ...node, access }, ...others] })
  const at = folderWith({
    'logs/audit.log': line(),
    'logs/audit-2026-11-25T09-00-00.000.log.gz': gzipSync(line()),
    'old-ca.crt': oldCa.pem,
    'ann.pem': one.pem,
    'kcert.yaml': inventory({ by: 'local' }),
    'away.yaml': inventory({ by: 'command', argv: ['false'] }),
    'two.yaml': inventory(
      { by: 'local' },
      { ...node, name: 'cp2', addresses: ['192.0.2.2'], access: { by: 'command', argv: ['false'] } },
    ),
  })
  const flags = ['--ca', join(at, 'old-ca.crt'), '--known', join(at, 'ann.pem')]
  const report = reportOf([join(at, 'logs'), '-i', join(at, 'kcert.yaml'), ...flags])
  expect(report).toMatchObject({
    credentials: [{ status: 'old', users: ['ann'], requests: 2 }],
    incomplete: [],
    exit: 3,
  })
  const away = reportOf([join(at, 'logs'), '-i', join(at, 'away.yaml'), ...flags])
  expect(away).toMatchObject({ conclusion: 'unknown', exit: 4 })
  expect(away.incomplete[0]).toMatch(/^cp1: /)
  const live = reportOf(['--live', '-i', join(at, 'away.yaml')])
  expect(live).toMatchObject({ conclusion: 'unknown', exit: 4 })
  expect(live.incomplete[0]).toMatch(/^cp1: /)
  const partial = reportOf([join(at, 'logs'), '-i', join(at, 'two.yaml'), '--node', 'cp1', ...flags])
  expect(partial.incomplete).toEqual(['no logs of cp2 were read: --node leaves them out'])
})

test('does not conclude from fewer logs than the cluster has API servers', async () => {
  const server = await startApiServer()
  server.put(
    { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices', namespace: 'default' },
    {
      metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
      endpoints: [{ addresses: ['192.0.2.1', '192.0.2.2'] }],
    },
  )
  const bob = client('bob', newCa)
  const event = auditLine({ username: 'bob', credential: certificateId(bob) })
  const at = folderWith({
    ...{ 'cp1/audit.log': event, 'cp2/audit.log': event },
    ...{ 'old-ca.crt': oldCa.pem, 'bob.pem': bob.pem },
  })
  const kubeconfig = server.writeKubeconfig(join(at, 'admin.conf'))
  const flags = ['--ca', 'old-ca.crt', '--known', 'bob.pem', '--cluster', '--kubeconfig', kubeconfig]
  const reportOn = async (...logs: string[]) => {
    const { stdout, exit } = await kcertBeside(['audit', ...logs, ...flags, '-o', 'json'], { cwd: at })
    const { conclusion, incomplete, notes } = JSON.parse(stdout) as Record<string, unknown>
    return { conclusion, incomplete, notes, exit }
  }
  const text = (logs: number): string =>
    `API servers of the cluster: 2; different logs that were read: ${logs}; they do not name the API server that wrote them`
  expect(await reportOn('cp1')).toEqual({ conclusion: 'unknown', incomplete: [text(1)], notes: [], exit: 3 })
  expect(await reportOn('cp1', 'cp2')).toEqual({
    conclusion: 'not-used',
    incomplete: [],
    notes: [text(2)],
    exit: 0,
  })
  await server.close()
})

test('prints no control character of a user agent or user name', () => {
  const hostile = '\u001b[2J\u202eann\u0007'
  const at = filesWith(line({ username: hostile, fields: { userAgent: hostile, sourceIPs: [hostile] } }))
  for (const format of ['text', 'wide', 'json', 'yaml', 'name']) {
    const { stdout } = kcert(['audit', join(at, 'audit.log'), '-o', format])
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
  }
})

test('says that events are later than now', () => {
  const at = filesWith(line({ at: '2126-11-25T10:00:00Z' }))
  expect(reportOf([join(at, 'audit.log')]).notes).toEqual([
    expect.stringContaining('events with a time in the future: 1'),
  ])
})

test.each([
  [[], 'LOG is missing'],
  [['missing.log'], 'missing.log does not exist'],
  [['/dev/null'], '/dev/null is a device, not a file'],
  [['-', '--ca', '-'], 'cannot both be standard input'],
  [['-', '--context', 'x'], '--context requires --cluster'],
  [['-', '--node', 'cp1'], '--node requires --inventory'],
  [['--all-nodes'], 'inventory kcert.yaml does not exist'],
  [['--live'], '--live requires --inventory or --all-nodes, and no LOG'],
  [['--live', '-i', 'kcert.yaml', 'x.log'], '--live requires --inventory or --all-nodes, and no LOG'],
  [['-', '--new-key-since', '-1h'], '--new-key-since requires --sa-key'],
  [['-', '--since', 'yesterday'], 'invalid time "yesterday"'],
  [['-', '--since', '+1h'], '--since +1h is in the future'],
  [['-', '--known', './missing.pem'], './missing.pem does not exist'],
])('rejects %j', (args, message) => {
  const { stderr, exit } = kcert(['audit', ...args])
  expect(exit).toBe(2)
  expect(stderr).toContain(message)
})

test('rejects a file without the old CA or key', () => {
  const at = folderWith({ 'ann.pem': one.pem, 'old-ca.crt': oldCa.pem, text: 'hello' })
  const ca = kcert(['audit', '-', '--ca', join(at, 'ann.pem')])
  expect([ca.exit, ca.stderr]).toEqual([3, expect.stringContaining('contains no CA certificate')])
  const key = kcert(['audit', '-', '--sa-key', join(at, 'text')])
  expect([key.exit, key.stderr]).toEqual([2, expect.stringContaining('contains no service account key')])
  // Kubernetes signs tokens with RSA and ECDSA only: the ID of another key is in no token, so none would be found.
  const { publicKey } = generateKeyPairSync('ed25519')
  writeFileSync(join(at, 'ed25519.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  const other = kcert(['audit', '-', '--sa-key', join(at, 'ed25519.pub')])
  expect([other.exit, other.stderr]).toEqual([2, expect.stringContaining('contains no service account key')])
})

test('prints a policy that its own check accepts', () => {
  const { stdout, exit } = kcert(['audit', 'policy'])
  expect(exit).toBe(0)
  const checked = kcert(['audit', 'policy', '--check', '-'], { stdin: stdout })
  expect([checked.exit, checked.stdout]).toEqual([
    0,
    'sufficient: standard input hides no use of a credential\n',
  ])
})

test('says which rule of a policy hides uses', () => {
  const policy =
    'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n  users: [system:kube-proxy]\n- level: Metadata\n'
  const { stdout, exit } = kcert(['audit', 'policy', '--check', '-'], { stdin: policy })
  expect(exit).toBe(3)
  expect(stdout).toContain(
    'problem rule 1: level None: no event shows the credentials of requests with users system:kube-proxy',
  )
  const json = kcert(['audit', 'policy', '--check', '-', '-o', 'json'], { stdin: policy })
  expect(violations('AuditPolicyCheck', JSON.parse(json.stdout))).toEqual([])
})
