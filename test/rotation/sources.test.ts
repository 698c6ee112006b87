import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { RotationSession } from '../../src/app/rotate-ca/session.ts'
import type { SessionFlags } from '../../src/app/rotate-ca/site.ts'
import { sourcesIn } from '../../src/app/rotate-ca/sources.ts'
import { commandConfig } from '../../src/cli/oclif-config.ts'
import RotateCaPlan from '../../src/commands/rotate-ca/plan.ts'
import { renderPlan } from '../../src/output/rotation/plan.ts'
import { certificateRecord } from '../../src/rotation/certificate-record.ts'
import type { RotationPlan, RotationSources } from '../../src/rotation/report.ts'
import { type SourceSearch, searchOf } from '../../src/rotation/sources/searched-cas.ts'
import type { Target } from '../../src/rotation/target.ts'
import { largestFileBytes } from '../../src/system/files.ts'
import { readCertificates } from '../../src/x509/certificate.ts'
import { certificatePem, testCa, testKey } from '../pki/kubeadm-tree.ts'
import { violations } from '../scripts/schemas.ts'
import { SimulatedOperator, wide } from './operator.ts'
import { Scene } from './scene.ts'

// `kcert rotate-ca plan --sources DIR`: what the files of a repository would restore, and the diff that they need.

const since = new Date('2026-01-01T00:00:00Z')
const pemOf = (name: string): string =>
  certificatePem(testCa(name, testKey(`sources ${name}`), since).certificate)
const [oldPem, newPem] = [pemOf('kubernetes'), pemOf('kubernetes-ca-2')]
const recordOf = (pem: string) => readCertificates(pem).map((one) => certificateRecord(one))[0]!
const [oldCa, newCa] = [recordOf(oldPem), recordOf(newPem)]
const target = (isDropping: boolean) =>
  ({ changes: [{ ca: 'cluster', oldCa, newCa }], isDropping }) as unknown as Target
const searchAt = (step: 'overlap' | 'final'): SourceSearch =>
  searchOf(target(step === 'final'), ['cluster'], () => newPem)
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const indented = (text: string, by: string): string => text.trimEnd().replace(/^/gm, by)
const keyLines = base64('0123456789abcdef'.repeat(20))
const keyPem = `-----BEGIN PRIVATE KEY-----\n${keyLines.replace(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kcert-sources-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

function write(files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
}

const searched = (step: 'overlap' | 'final'): Promise<RotationSources> =>
  sourcesIn(folder, { workingFolder: '/' })(searchAt(step))

function apply(program: string, input: string): void {
  const args = program === 'git' ? ['apply', '-p1'] : ['-p1', '-s']
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: tmpdir() }
  execFileSync(program, args, { cwd: folder, input, env })
}

const opens = ({ places }: RotationSources) => places.filter(({ needsChange }) => needsChange)

// What issue trackers of GitOps tools show most, each in the form in which repositories have it.
const repositories: readonly (readonly [string, string, (pem: string) => string, string | undefined])[] = [
  [
    'the kubeadm-config ConfigMap',
    'kubeadm-config.yaml',
    (pem) =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kubeadm-config\n  namespace: kube-system\ndata:\n  ClusterConfiguration: |\n    kind: ClusterConfiguration\n    files:\n    - path: /etc/kubernetes/pki/ca.crt\n      content: |\n${indented(pem, '        ')}\n`,
    'ConfigMap kube-system/kubeadm-config',
  ],
  [
    'a Cluster API Secret without its key',
    'clusters/prod ca.yaml',
    (pem) =>
      `apiVersion: v1\nkind: Secret\nmetadata:\n  name: prod-ca\ntype: cluster.x-k8s.io/secret\ndata:\n  tls.crt: ${base64(pem)}\n`,
    'Secret prod-ca',
  ],
  [
    'variables of kubespray',
    'inventory/group_vars/all.yml',
    (pem) =>
      `---\nkube_version: 1.36.3\nkube_extra_ca: |-\n${indented(pem, '  ')}\nbin_dir: /usr/local/bin\n`,
    undefined,
  ],
  [
    'a bundle in a ConfigMap',
    'bundles/ca.yaml',
    (pem) =>
      `kind: List\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: other}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: bundle\n  data:\n    ca-bundle.crt: ${JSON.stringify(pem)}\n`,
    'ConfigMap bundle',
  ],
  [
    'a webhook in a chart',
    'charts/guard/templates/webhook.yaml',
    (pem) =>
      `{{- if .Values.webhook }}\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: guard\nwebhooks:\n- name: guard.example.com\n  clientConfig:\n    caBundle: ${base64(pem)}\n    url: https://guard.example.com\n{{- end }}\n`,
    undefined,
  ],
]

test.each(repositories)('%s: the diffs apply, one after the other', async (_, name, text, object) => {
  write({ [name]: text(oldPem) })
  for (const program of ['git', 'patch']) {
    write({ [name]: text(oldPem) })
    const overlap = await searched('overlap')
    const place = { file: name, ca: 'cluster', contains: 'old', needsChange: true }
    expect(overlap.places).toEqual([expect.objectContaining({ ...place, ...(object && { object }) })])
    expect(overlap).toMatchObject({ unchecked: [], step: 'overlap' })
    const { line } = overlap.places[0]!
    expect(text(oldPem).split('\n')[line - 1]).toMatch(/BEGIN CERTIFICATE|LS0t/)
    apply(program, overlap.diff)
    expect(readFileSync(join(folder, name), 'utf8')).toBe(text(oldPem + newPem))
    expect(await searched('overlap')).toMatchObject({
      places: [{ contains: 'both', needsChange: false }],
      diff: '',
    })
    apply(program, (await searched('final')).diff)
    expect(readFileSync(join(folder, name), 'utf8')).toBe(text(newPem))
    expect(await searched('final')).toMatchObject({ places: [], unchecked: [], diff: '', files: 1 })
  }
})

test('a Cluster API Secret with its private key is named, and changed by hand', async () => {
  const data = `data:\n  tls.crt: ${base64(oldPem)}\n${'  a.crt: eA==\n'.repeat(9)}  tls.key: ${base64(keyPem)}\n`
  write({ 'ca.yaml': `kind: Secret\nmetadata:\n  name: prod-ca\n${data}` })
  for (const step of ['overlap', 'final'] as const) {
    const sources = await searched(step)
    const byHand = expect.stringContaining('private key')
    expect(sources).toMatchObject({
      places: [{ object: 'Secret prod-ca', needsChange: true, byHand }],
      diff: '',
    })
    expect(JSON.stringify(sources)).not.toContain(base64(keyPem).slice(0, 40))
  }
})

test('a CA cert hash is replaced once the old CA is gone', async () => {
  write({ 'join.yaml': `discovery:\n  caCertHashes:\n  - sha256:${oldCa.spki}\n` })
  expect(await searched('overlap')).toMatchObject({ places: [{ needsChange: false }], diff: '' })
  apply('git', (await searched('final')).diff)
  expect(readFileSync(join(folder, 'join.yaml'), 'utf8')).toContain(`sha256:${newCa.spki}`)
})

const der = Buffer.from(oldPem.replace(/-----.*-----|\n/g, ''), 'base64')
test.each<readonly [string, string | Uint8Array]>([
  ['base64 on several lines', `a: |\n${base64(oldPem).replace(/.{1,76}/g, '  $&\n')}`],
  ['base64 on several lines after a word', `a: foo\n${base64(oldPem).replace(/.{1,76}/g, '  $&\n')}`],
  [
    'a JSON string with escaped characters',
    JSON.stringify({ a: base64(der.toString('latin1')), b: der.toString('base64') }).replaceAll(
      '+',
      '\\u002b',
    ),
  ],
  [
    'a double-quoted string on several lines',
    `a: "${der.toString('base64').replace(/.{60}/g, '$&\\\n   ')}"\n`,
  ],
  ['DER', der],
  ['UTF-16', Buffer.from(`\ufeff${oldPem}`, 'utf16le')],
  ['a file that is not UTF-8', Buffer.concat([Buffer.from('# caf\xe9\n', 'latin1'), Buffer.from(oldPem)])],
])('finds the old CA in %s, and leaves the change to a person', async (_, content) => {
  write({ file: content })
  const { places, diff } = await searched('final')
  expect(places).toMatchObject([{ file: 'file', byHand: expect.any(String), needsChange: true }])
  expect(diff).toBe('')
})

test.each<readonly [string, string | Uint8Array]>([
  ['SOPS', 'data:\n  ca: ENC[AES256_GCM,data:x,type:str]\n'],
  ['ansible-vault', 'ca: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n'],
  ['SealedSecret', 'kind: SealedSecret\n'],
  ['Git LFS', 'version https://git-lfs.github.com/spec/v1\noid sha256:00\n'],
  ['compressed', `encoding: gzip+base64\ncontent: H4sIAAAA${'A'.repeat(100)}\n`],
  ['compressed', Buffer.from([0x1f, 0x8b, 8, 0, 0])],
])('a file that may hide a CA is not checked: %s', async (word, content) => {
  write({ file: content })
  expect(await searched('final')).toMatchObject({
    places: [],
    unchecked: [{ file: 'file', why: expect.stringContaining(word) }],
  })
})

test('does not follow links out of the folder, and names everything that it does not read', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'kcert-outside-'))
  writeFileSync(join(outside, 'ca.crt'), oldPem)
  write({ 'a.txt': 'a', '.git/ca.crt': oldPem, 'sub/.git': 'gitdir: ../x', 'large.bin': '' })
  truncateSync(join(folder, 'large.bin'), largestFileBytes + 1)
  execFileSync('mkfifo', [join(folder, 'pipe')])
  symlinkSync(join(outside, 'ca.crt'), join(folder, 'out.crt'))
  symlinkSync(outside, join(folder, 'out'))
  symlinkSync('..', join(folder, 'up'))
  symlinkSync('.git', join(folder, 'hidden'))
  symlinkSync('missing', join(folder, 'dangling'))
  symlinkSync('../a.txt', join(folder, 'sub/in'))
  writeFileSync(Buffer.concat([Buffer.from(join(folder, 'caf')), Buffer.from([0xe9])]), oldPem)
  try {
    const { files, places, unchecked } = await searched('final')
    expect({ files, places }).toEqual({ files: 1, places: [] })
    expect(unchecked.map(({ file, why }) => `${file}: ${why}`)).toEqual([
      'caf\ufffd: its name is not UTF-8',
      'dangling: it is a link that leads out of the folder',
      'hidden: it is a link that leads out of the folder',
      'large.bin: is larger than 20 MiB, the most that kcert reads of one file',
      'out: it is a link that leads out of the folder',
      'out.crt: it is a link that leads out of the folder',
      'pipe: it is a FIFO, a socket or a device',
      'up: it is a link that leads out of the folder',
    ])
  } finally {
    rmSync(outside, { recursive: true })
  }
})

test('an empty folder, and a CA that could not be read, are never a clean result', async () => {
  expect((await searched('final')).unchecked).toMatchObject([{ file: '.' }])
  write({ 'a.yaml': 'a: 1\n' })
  const search = searchOf(target(true), ['cluster', 'front-proxy'], () => newPem)
  const why = expect.stringContaining('front-proxy CA')
  expect((await sourcesIn(folder, { workingFolder: '/' })(search)).unchecked).toEqual([{ file: '.', why }])
  expect(() => searchOf({ ...target(true), changes: [] }, ['cluster'], () => newPem)).toThrow(
    expect.objectContaining({ code: 'KCERT_NODE_UNREACHABLE' }),
  )
})

test('a change beside a secret is by hand, even if another CA of the same bundle is in the diff', async () => {
  const [frontOld, frontNew] = [pemOf('front-proxy-ca'), pemOf('front-proxy-ca-2')]
  write({ 'a.pem': `${oldPem}${frontOld}password: correct horse\n` })
  const front = { ca: 'front-proxy', oldCa: recordOf(frontOld), newCa: recordOf(frontNew) }
  const both = { ...target(false), changes: [...target(false).changes, front] } as Target
  const search = searchOf(both, ['cluster', 'front-proxy'], (digest) =>
    digest === newCa.digest ? newPem : frontNew,
  )
  const { places, diff } = await sourcesIn(folder, { workingFolder: '/' })(search)
  expect(places.map(({ ca, byHand }) => [ca, byHand])).toEqual([
    ['cluster', undefined],
    ['front-proxy', expect.stringContaining('secret')],
  ])
  expect(diff).not.toContain('correct horse')
  apply('git', diff)
  expect(readFileSync(join(folder, 'a.pem'), 'utf8')).toBe(
    `${oldPem}${newPem}${frontOld}password: correct horse\n`,
  )
})

test('without the PEM of the new CA, each place is changed by hand', async () => {
  write({ 'ca.crt': oldPem })
  const search = searchOf(target(false), ['cluster'], () => undefined)
  const { places, diff } = await sourcesIn(folder, { workingFolder: '/' })(search)
  expect(places).toMatchObject([{ needsChange: true, byHand: expect.stringContaining('new CA') }])
  expect(diff).toBe('')
})

test('reads 10,000 files of which half are no manifests', async () => {
  for (let index = 0; index < 5_000; index++) {
    const content =
      index % 2 ? Buffer.from([0x89, 0x50, 0, index % 256]) : Buffer.from(`line ${index}\n`.repeat(20))
    write({ [`other/${index % 50}/${index}.bin`]: content })
    write({
      [`apps/${index % 50}/${index}.yaml`]: `kind: ConfigMap\nmetadata:\n  name: c${index}\ndata:\n  a: b\n`,
    })
  }
  write({ 'apps/49/ca.yaml': `caBundle: ${base64(oldPem)}\n` })
  const { files, places, unchecked } = await searched('overlap')
  expect({ files, unchecked }).toEqual({ files: 10_001, unchecked: [] })
  expect(places).toMatchObject([{ file: 'apps/49/ca.yaml', line: 1 }])
}, 120_000)

// A key after the certificate, in the same block.
const trailing = `-----BEGIN CERTIFICATE-----\n${Buffer.concat([der, Buffer.from('correct horse')]).toString('base64')}\n-----END CERTIFICATE-----\n`
const bundle = `caBundle: ${base64(oldPem)}\n`
test.each([
  [
    'a block scalar of stringData',
    `kind: Secret\nstringData:\n  ca.crt: |\n${indented(oldPem, '    ')}\n  note: |\n    correct horse\n`,
  ],
  [
    'one line of JSON',
    `${JSON.stringify({ kind: 'Secret', stringData: { note: 'correct horse', ca: oldPem } })}\n`,
  ],
  [
    'an environment variable',
    `env:\n- name: DB_PASSWORD\n  value: correct horse\n- name: CA\n  value: ${base64(oldPem)}\n`,
  ],
  ['an anchor', `x: &token\n  correct horse\n${bundle}`],
  ['a URL', `url: https://ann:correct-horse@example.com\n${bundle}`],
  [
    'base64 on several lines',
    `x: |\n${base64(`correct horse ${'x'.repeat(200)}`).replace(/.{1,60}/g, '  $&\n')}${bundle}`,
  ],
  ['a double-quoted value on several lines', `${bundle}x: "correct horse\\\n  abc \\\n  def"\n`],
  ['a value whose second line is outside', `${bundle}a: 1\nb: 1\nx: correct horse\n  MHcCAQEEIB9\n`],
  ['hexadecimal', `x:\n  ${'ab:'.repeat(12)}\n  correct horse\n${bundle}`],
  ['a comment of a bundle', `caBundle: ${base64(`${oldPem}# correct horse ${keyLines.slice(0, 64)}\n`)}\n`],
  ['the rest of a certificate', `ca: |\n${indented(trailing, '  ')}\n`],
  ['a huge line', `x: ${'a b '.repeat(100_000)} correct horse\n${bundle}`],
  ['a line of spaces', `kind: Secret\ndata:${' '.repeat(200_000)}correct horse\n${bundle}`],
  ['a line with terminal controls', `x: \u001b]0;correct horse\u0007\n${bundle}`],
  [
    'a document that begins like PEM',
    `kind: Secret\nstringData:\n  note: correct horse\n  ca: ${JSON.stringify(oldPem)}\n`,
  ],
])('does not show a secret in %s', async (_, text) => {
  write({ 'a.yaml': text })
  const start = performance.now()
  const sources = await searched('overlap')
  expect(performance.now() - start).toBeLessThan(20_000)
  expect(sources).toMatchObject({ places: [{ needsChange: true, byHand: expect.any(String) }], diff: '' })
  expect(JSON.stringify(sources)).not.toMatch(/correct.horse|Y29ycmVjdCBob3JzZ/)
})

test('file names with terminal controls are escaped, and are in no diff', async () => {
  write({ 'a\u001b[2J\nb.yaml': bundle, 'c\td.yaml': bundle })
  const sources = await searched('overlap')
  expect(sources).toMatchObject({
    places: [{ byHand: expect.any(String) }, { byHand: expect.any(String) }],
    diff: '',
  })
  const text = await textOf(sources)
  expect(text).toContain('a\\u001b[2J\\u000ab.yaml:1')
  expect(text).not.toContain('\u001b')
})

test('hostile files take seconds, not hours', async () => {
  write({
    'pins.txt': `${oldCa.spki} `.repeat(200_000),
    'spaces.pem': oldPem + ' '.repeat(10_000_000) + oldPem,
    'base64.txt': base64(base64(`MII${'A'.repeat(4_000_000)}`)),
    'cas.pem': oldPem.repeat(3_000),
    'brackets.yaml': '['.repeat(1_000_000) + oldPem,
  })
  const start = performance.now()
  const { unchecked, places } = await searched('final')
  expect(performance.now() - start).toBeLessThan(60_000)
  expect(unchecked.map(({ file }) => file)).toEqual(['pins.txt'])
  expect(new Set(places.map(({ file }) => file))).toEqual(new Set(['brackets.yaml', 'cas.pem', 'spaces.pem']))
}, 120_000)

/** Returns the text of a plan with these sources, on the simulated cluster. */
async function textOf(sources: RotationSources): Promise<string> {
  const operator = new SimulatedOperator(new Scene({ controlPlanes: 1, workers: 0 }))
  const plan = await operator.command((session) => session.plan(async () => sources))
  expect(violations('RotationPlan', plan)).toEqual([])
  return renderPlan(plan, wide)
}

test('the text of the whole plan can be applied as it is', async () => {
  write({ 'a.yaml': bundle, 'b/c.yaml': `x: 1\n${bundle}` })
  const text = await textOf(await searched('overlap'))
  expect(text).toContain('old CAs in ')
  expect(text).toMatch(/2 places to change in 2 files\n.*after phase 1 and before phase 9/)
  apply('git', text)
  expect(opens(await searched('overlap'))).toEqual([])
})

/** The command on the simulated cluster. Keeps its report. */
class Plan extends RotateCaPlan {
  operator = new SimulatedOperator(new Scene({ controlPlanes: 1, workers: 0 }))
  report: unknown

  protected override withSession<Result>(
    _flags: SessionFlags,
    _mode: string,
    act: (session: RotationSession) => Promise<Result>,
  ): Promise<Result> {
    return this.operator.command(act)
  }

  protected override async show<Report extends object>(_format: string, report: Report): Promise<0> {
    this.report = report
    return 0
  }
}

test('the command exits with 3 until the files have no old CA, and follows the state of the rotation', async () => {
  const scene = new Scene({ controlPlanes: 1, workers: 1 })
  const operator = new SimulatedOperator(scene)
  const before = process.exitCode
  const plan = async () => {
    const command = new Plan(['--sources', folder], commandConfig('0.0.0'))
    command.operator = operator
    await command.run()
    expect(violations('RotationPlan', command.report)).toEqual([])
    const { sources } = command.report as RotationPlan
    return { sources: sources!, exit: process.exitCode }
  }
  try {
    const { oldCa: present } = scene.cluster
    write({ 'join.yaml': `caCertHashes: ["sha256:${present.spki}"]\n`, 'other.yaml': 'a: 1\n' })
    expect(await plan()).toMatchObject({
      sources: { step: 'find', places: [{ needsChange: true }], diff: '' },
      exit: 3,
    })
    await operator.command((session) => session.run([1]), { yes: true })
    expect(await plan()).toMatchObject({
      sources: { step: 'overlap', places: [{ needsChange: false }] },
      exit: 0,
    })
    write({ 'x.bin': Buffer.from(present.publicKey!, 'base64') })
    expect(await plan()).toMatchObject({
      sources: { places: [{}, { form: 'other', needsChange: true }] },
      exit: 3,
    })
    rmSync(join(folder, 'x.bin'))
    await scene.runAll(2, 12)
    const final = await plan()
    expect(final).toMatchObject({ sources: { step: 'final', places: [{ needsChange: true }] }, exit: 3 })
    apply('git', final.sources.diff)
    expect(await plan()).toMatchObject({ sources: { step: 'final', places: [] }, exit: 0 })
    write({ 'x.yaml': 'kind: SealedSecret\n' })
    expect(await plan()).toMatchObject({ sources: { places: [], unchecked: [{ file: 'x.yaml' }] }, exit: 3 })
  } finally {
    process.exitCode = before
  }
}, 120_000)
