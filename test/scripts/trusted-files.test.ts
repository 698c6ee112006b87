import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { kcert } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// Files whose content decides what kcert runs, approves or signs are used only when no user other than root and the caller can
// change them.

const folder = temporaryFolder('trusted-files')
const shared = join(folder, 'shared')
const isRoot = process.getuid?.() === 0
const stranger = 65534
const mark = join(folder, 'ran')

const inventory = `apiVersion: kcert/v1
kind: Inventory
nodes:
- {name: cp1, role: control-plane, addresses: [127.0.0.1], layout: kubeadm,
   access: {by: command, argv: [/bin/sh, -c, 'touch ${mark}; exec "$@"', x]}}
`

beforeAll(() => {
  fs.mkdirSync(shared)
  fs.chmodSync(shared, 0o777)
  fs.writeFileSync(join(folder, 'kcert.yaml'), inventory)
  fs.writeFileSync(
    join(folder, 'admin.conf'),
    `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`,
  )
  for (const name of ['kcert.yaml', 'policy.yaml', 'journal', 'config.json', 'template.yaml', 'ssh_config'])
    fs.writeFileSync(join(shared, name), name === 'kcert.yaml' ? inventory : '')
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'].concat([
      '-keyout',
      join(folder, 'ca.key'),
      '-out',
      join(folder, 'ca.crt'),
      '-subj',
      '/CN=ca',
    ]),
    { stdio: 'ignore' },
  )
})

function run(args: readonly string[], cwd = folder) {
  return kcert(args, { cwd, env: { KUBECONFIG: join(folder, 'admin.conf'), HOME: folder } })
}

interface Manifest {
  readonly commands: Readonly<
    Record<string, { readonly flags: Readonly<Record<string, object>>; readonly args?: object }>
  >
}

/** Flag → the kind of file in messages, and the file. */
const kinds: Readonly<Record<string, readonly [kind: string, file: string]>> = {
  inventory: ['inventory', 'kcert.yaml'],
  journal: ['journal', 'journal'],
  policy: ['approval policy', 'policy.yaml'],
  approve: ['approval policy', 'policy.yaml'],
  config: ['signing profile', 'config.json'],
  template: ['certificate template', 'template.yaml'],
  'ssh-config': ['ssh configuration', 'ssh_config'],
  'clusterprofile-provider-file': ['provider file', 'config.json'],
}

/** Other arguments that a command needs before it reads the file. */
const besides: Readonly<Record<string, readonly string[]>> = {
  'ca:sign': ['--ca', 'ca.crt', '--ca-key', 'ca.key', '--profile', 'x', '--out', 'o', 'request.pem'],
  'controller:manifest': ['--image', 'x'],
  'fleet:inspect': ['--from', 'clusterprofile'],
  'fleet:probe': ['--from', 'clusterprofile'],
  'fleet:status': ['--from', 'clusterprofile'],
  'csr:check': ['name'],
  'kubelet:manage': [
    '--cert-dir',
    'pki',
    '--signer',
    'example.com/x',
    '--usage',
    'client auth',
    '--pair-name',
    'x',
    '--once',
  ],
  'rotate-ca': ['--phase', '1', '--dry-run'],
  'rotate-ca:runbook': ['DIR', '--phase', '1'],
  'rotate-sa-key:runbook': ['DIR', '--phase', '1'],
  'rotate-ca:rollback': ['--dry-run'],
  'rotate-ca:discover': ['--dry-run'],
}

const manifest = JSON.parse(fs.readFileSync('oclif.manifest.json', 'utf8')) as Manifest
const rows = Object.entries(manifest.commands).flatMap(([id, { flags }]) =>
  Object.keys(flags).flatMap((flag) => (flag in kinds ? [[id, flag] as const] : [])),
)

test.each(rows)('%s refuses --%s in a folder that others can write to', (id, flag) => {
  const [kind, file] = kinds[flag]!
  const args = [...id.split(':'), ...(besides[id] ?? []), `--${flag}`, join(shared, file)]
  const { stdout, stderr, exit } = run(args)
  expect(stderr).toContain(
    `KCERT_FILE_UNTRUSTED: the ${kind} ${join(shared, file)} can be changed by other users`,
  )
  expect(stderr).toMatch(new RegExp(`why: the folder ${shared} has owner \\d+, group \\d+, mode 0777;`))
  expect({ stdout, exit }).toEqual({ stdout: '', exit: 5 })
  expect(fs.existsSync(mark)).toBe(false)
})

test('kubelet manage refuses a PID file in a folder that others can write to, before it renews', () => {
  const pidFile = join(shared, 'later.pid')
  const { stderr, exit } = run([
    ...['kubelet', 'manage', '--cn', 'x', '--signer', 'example.com/x', '--usage', 'client auth'],
    ...['--cert-dir', 'pki', '--pair-name', 'x', '--dry-run', '--signal', 'HUP', '--pid-file', pidFile],
  ])
  expect(stderr).toContain(`KCERT_FILE_UNTRUSTED: the PID file ${pidFile} can be changed by other users`)
  expect(exit).toBe(5)
})

test.each(['/dev/null', 'none'])(
  '--ssh-config %s, which disables the configuration of ssh, is accepted',
  (path) => {
    const { stderr } = run(['rotate-ca', 'discover', '--dry-run', '--ssh-config', path], shared)
    expect(stderr).toContain('KCERT_UNREACHABLE')
  },
)

describe('an inventory in the current folder', () => {
  test.each([['renew'], ['renew', '--dry-run'], ['kubelet', 'doctor']])(
    'is not used by %s %s',
    (...words) => {
      const { stderr } = run(words)
      expect(stderr).not.toContain('inventory: ')
      expect(fs.existsSync(mark)).toBe(false)
    },
  )

  test.runIf(isRoot).each([[['rotate-ca', 'status']], [['rotate-ca', 'recover', '--dry-run']]])(
    'of another user is refused by %s, with the name of the owner',
    (words) => {
      const theirs = join(folder, 'theirs')
      fs.mkdirSync(theirs, { recursive: true })
      fs.writeFileSync(join(theirs, 'kcert.yaml'), inventory)
      fs.chownSync(join(theirs, 'kcert.yaml'), stranger, stranger)
      const { stderr, exit } = run(words, theirs)
      expect(stderr).toContain(
        `KCERT_FILE_UNTRUSTED: the inventory ${join(theirs, 'kcert.yaml')} can be changed by other users`,
      )
      expect(stderr).toContain(
        `why: the file ${join(theirs, 'kcert.yaml')} has owner ${stranger}, group ${stranger}, mode 0644;`,
      )
      expect(stderr).toContain(`install -m 600 ${join(theirs, 'kcert.yaml')} ~/kcert.yaml`)
      expect(exit).toBe(5)
      expect(fs.existsSync(mark)).toBe(false)
    },
  )
})

test('uses an inventory that only the caller can change, and names it on stderr', () => {
  const { stderr } = run(['kubelet', 'doctor', '--inventory', 'kcert.yaml'])
  expect(stderr).toContain(`inventory: ${join(folder, 'kcert.yaml')}\n`)
  expect(fs.existsSync(mark)).toBe(true)
  fs.rmSync(mark)
})

test("on standard input, refuses a file that others can change, and accepts the caller's own pipe", () => {
  const open = join(folder, 'open.yaml')
  fs.writeFileSync(open, inventory)
  fs.chmodSync(open, 0o666)
  const program = [process.execPath, join(process.cwd(), 'bin/run.js'), 'kubelet', 'doctor', '-i', '-']
  const shell = (line: string) => spawnSync('sh', ['-c', line, 'sh', ...program], { encoding: 'utf8' })
  const refused = shell(`"$@" < ${open}`)
  expect(refused.stderr).toContain(
    'KCERT_FILE_UNTRUSTED: the inventory standard input can be changed by other users',
  )
  expect(refused.stderr).toMatch(/fix: read it, .* only you can change, and redirect the copy\n/)
  expect(refused.status).toBe(5)
  expect(fs.existsSync(mark)).toBe(false)
  expect(shell(`cat ${open} | "$@"`).stderr).toContain('inventory: standard input\n')
  expect(fs.existsSync(mark)).toBe(true)
})
