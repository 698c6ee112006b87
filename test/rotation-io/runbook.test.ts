import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { FileContent, NodeAccess } from '../../src/pki/node-access.ts'
import { recordingNode } from '../../src/rotation-io/recording-node.ts'
import { nodeRunbook, type ScriptedChange } from '../../src/rotation-io/runbook-script.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'

// The script of one node, run by small shells on a folder that represents the root of the node.

const folder = temporaryFolder('runbook')
const key = '-----BEGIN PRIVATE KEY-----\nnot a key, and shown nowhere\n-----END PRIVATE KEY-----\n'
const pki = '/etc/kubernetes/pki'
let count = 0

const shells = [['dash'], ['busybox', 'sh']].filter(
  ([shell]) => spawnSync('sh', ['-c', `command -v ${shell}`]).status === 0,
)

/** A node before a rotation: a CA, a kubelet's certificate behind a link, and a manifest. */
function makeRoot(): string {
  const root = join(folder, `root${++count}`)
  const put = (path: string, text: string, mode: number): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
    chmodSync(join(root, path), mode)
  }
  put(`${pki}/ca.crt`, 'old\n', 0o644)
  put(`${pki}/api.crt`, 'old leaf\n', 0o644)
  put(`${pki}/api.key`, 'old key\n', 0o640)
  put(`${pki}/back.crt`, 'old leaf\n', 0o644)
  put(`${pki}/back.key`, 'old key\n', 0o600)
  put(`${pki}/kept.crt`, 'leaf\n', 0o600)
  put(`${pki}/kept.key`, 'kept key\n', 0o600)
  put('/etc/kubernetes/admin.conf', 'admin\n', 0o600)
  put('/var/lib/kubelet/pki/kubelet-client-1.pem', 'pair\n', 0o600)
  symlinkSync('kubelet-client-1.pem', join(root, '/var/lib/kubelet/pki/kubelet-client-current.pem'))
  return root
}

/** Returns the changes of a rotation there, from the calls of its executor. */
async function changesOn(root: string): Promise<ScriptedChange[]> {
  const node = recordingNode(rooted(root), () => new Date('2026-11-21T12:00:00Z'))
  const copies = '/var/lib/kcert/copies'
  const client = '/var/lib/kubelet/pki'
  await node.makeFolder(copies, { mode: 0o700 })
  let index = ''
  for (const path of [`${pki}/ca.crt`, '/etc/kubernetes/admin.conf']) {
    const sum = digest(readFileSync(join(root, path)))
    await node.copyFile(path, `${copies}/${sum}`, { sha256: sum, replaces: 'anything', mode: 0o600 })
    const before = index === '' ? ('absent' as const) : { sha256: digest(index) }
    index += `{"path":"${path}","digest":"${sum}"}\n`
    await node.writeFile(`${copies}/index.jsonl`, index, { replaces: before, mode: 0o600 })
  }
  await node.makeFolder(`${pki}/kcert`, { mode: 0o755 })
  await node.writeFile(`${pki}/kcert/ca.key`, key, { replaces: 'absent', mode: 0o600 })
  await node.writeFile(`${pki}/ca.crt`, 'old\nnew\n', { replaces: { sha256: digest('old\n') } })
  const replaces = { sha256: digest('old leaf\n') }
  await node.writeFile(`${pki}/api.crt`, 'leaf\n', {
    replaces,
    key: { path: `${pki}/api.key`, replaces: { sha256: digest('old key\n') }, content: key },
  })
  await node.copyFile(`${pki}/kept.crt`, `${pki}/back.crt`, {
    sha256: digest('leaf\n'),
    replaces: { sha256: digest('old leaf\n') },
    key: {
      path: `${pki}/back.key`,
      replaces: { sha256: digest('old key\n') },
      from: `${pki}/kept.key`,
      sha256: digest('kept key\n'),
    },
  })
  await node.writeFile(`${client}/kubelet-client-2.pem`, key, { replaces: 'absent', mode: 0o600 })
  await node.linkFile(`${client}/kubelet-client-current.pem`, 'kubelet-client-2.pem', {
    replaces: { linkTarget: 'kubelet-client-1.pem' },
  })
  await node.removeFile(`${client}/kubelet-client-1.pem`, { holds: { sha256: digest('pair\n') } })
  expect(
    await node.readFiles([`${client}/kubelet-client-current.pem`, `${client}/kubelet-client-1.pem`]),
  ).toMatchObject([
    { found: 'file', linkTarget: 'kubelet-client-2.pem', sha256: digest(key) },
    { found: 'absent' },
  ])
  return [...node.take()]
}

const facts = {
  command: 'kcert rotate-ca',
  phase: 5,
  title: 'trust both',
  node: 'w1',
  next: 'kcert rotate-ca --phase 5 --by-runbook',
}

function writeScript(changes: readonly ScriptedChange[]): string {
  const at = join(folder, `script${++count}`)
  mkdirSync(at, { mode: 0o700 })
  for (const { name, content } of nodeRunbook(facts, changes)) {
    writeFileSync(join(at, name), content, { mode: 0o600 })
  }
  return at
}

function run(shell: readonly string[], script: string, root: string, env: Record<string, string> = {}) {
  const [program = '', ...words] = shell
  const { status, stdout, stderr } = spawnSync(program, [...words, join(script, 'run.sh')], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, KCERT_ROOT: root, KCERT_SETTLE: '0', KCERT_WAIT: '3', ...env },
  })
  return { status, stdout, stderr }
}

/** Returns every file in a folder with its mode, and the targets of links. */
function treeOf(root: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    const path = join(root, name)
    const stats = lstatSync(path)
    if (stats.isSymbolicLink()) found[name] = `-> ${readlinkSync(path)}`
    else if (stats.isFile()) found[name] = `${(stats.mode & 0o777).toString(8)} ${readFileSync(path, 'utf8')}`
  }
  return found
}

function rooted(root: string): NodeAccess {
  const read = (path: string): FileContent => {
    const at = join(root, path)
    if (!existsSync(at)) return { path, found: 'absent' }
    const content = readFileSync(at)
    const { mode, size, mtime } = statSync(at)
    const link = lstatSync(at).isSymbolicLink() ? { linkTarget: readlinkSync(at) } : {}
    const facts = { mode: mode & 0o777, uid: 0, gid: 0, sizeBytes: size, modifiedAt: mtime }
    return { path, found: 'file', ...facts, ...link, content, sha256: digest(content) }
  }
  return {
    name: 'w1',
    readFiles: async (paths: readonly string[]) => paths.map(read),
  } as unknown as NodeAccess
}

function digest(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

test('the shells that represent those of nodes are installed', () => {
  expect(shells.length).toBeGreaterThan(0)
})

test.each(shells)(
  '%s: a script makes the recorded changes, shows no key, and does nothing when run again',
  async (...shell) => {
    const root = makeRoot()
    const script = writeScript(await changesOn(root))
    expect(readFileSync(join(script, 'run.sh'), 'utf8')).not.toContain('PRIVATE')
    const first = run(shell, script, root)
    expect([first.status, first.stderr]).toEqual([0, ''])
    expect(first.stdout).not.toContain('PRIVATE')
    const tree = treeOf(root)
    expect(tree).toMatchObject({
      'etc/kubernetes/pki/ca.crt': '644 old\nnew\n',
      'etc/kubernetes/pki/kcert/ca.key': `600 ${key}`,
      'etc/kubernetes/pki/api.crt': '644 leaf\n',
      'etc/kubernetes/pki/api.key': `640 ${key}`,
      'etc/kubernetes/pki/back.crt': '644 leaf\n',
      'etc/kubernetes/pki/back.key': '600 kept key\n',
      'var/lib/kubelet/pki/kubelet-client-current.pem': '-> kubelet-client-2.pem',
      [`var/lib/kcert/copies/${digest('old\n')}`]: '600 old\n',
    })
    expect(Object.keys(tree).filter((name) => /kubelet-client-1|kcert-tmp/.test(name))).toEqual([])
    // Files with keys next to the script are gone, and the script no longer needs them.
    const beside = Object.values(treeOf(script)).filter((text) => text.includes('PRIVATE'))
    expect(beside).toEqual([])
    const second = run(shell, script, root)
    expect([second.status, second.stdout]).toEqual([0, first.stdout.split('\n').slice(-2).join('\n')])
    expect(treeOf(root)).toEqual(tree)
  },
)

test('has the same result when stopped after any line and run again', async () => {
  const [shell = ['sh']] = shells
  const root = makeRoot()
  const script = writeScript(await changesOn(root))
  const lines = readFileSync(join(script, 'run.sh'), 'utf8').split('\n')
  const start = lines.indexOf('checked') + 1
  const ends: Record<string, string>[] = []
  for (let stop = start; stop < lines.length - 1; stop++) {
    const [at, its] = [join(folder, `stopped${stop}`), join(folder, `tree${stop}`)]
    cpSync(script, at, { recursive: true })
    cpSync(root, its, { recursive: true, verbatimSymlinks: true })
    writeFileSync(join(at, 'run.sh'), [...lines.slice(0, stop), 'kill -9 $$'].join('\n'))
    run(shell, at, its)
    writeFileSync(join(at, 'run.sh'), lines.join('\n'))
    expect(run(shell, at, its)).toMatchObject({ status: 0, stderr: '' })
    ends.push(treeOf(its))
  }
  expect(ends.length).toBeGreaterThan(8)
  for (const end of ends) expect(end).toEqual(ends[0])
})

test('names a file that differs from the plan, and writes nothing', async () => {
  const [shell = ['sh']] = shells
  const root = makeRoot()
  const script = writeScript(await changesOn(root))
  writeFileSync(join(root, `${pki}/ca.crt`), 'somebody else\n')
  const tree = treeOf(root)
  const { status, stderr } = run(shell, script, root)
  expect(status).toBe(9)
  expect(stderr).toContain(`${pki}/ca.crt changed since this was planned`)
  expect(stderr).toContain('nothing was written')
  expect(treeOf(root)).toEqual(tree)
})

test('writes nothing when prepared content is missing or was changed in transit', async () => {
  const [shell = ['sh']] = shells
  const root = makeRoot()
  const script = writeScript(await changesOn(root))
  const tree = treeOf(root)
  rmSync(join(script, '001'))
  writeFileSync(join(script, '003'), 'another key')
  const { status, stderr } = run(shell, script, root)
  expect(status).toBe(9)
  expect(stderr).toContain('001 beside this script is missing')
  expect(stderr).toContain('003 beside this script is missing')
  expect(treeOf(root)).toEqual(tree)
})

test.each(shells)('%s: restarts a process once, and names one that does not return', async (...shell) => {
  const root = makeRoot()
  const now = Math.floor(Date.now() / 1000)
  const hz = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
  const process_ = (pid: number, ageSeconds: number): string => `
mkdir -p ${root}/proc/${pid}; echo kubelet >${root}/proc/${pid}/comm
echo '${pid} (kubelet) S 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 ${(100_000 - ageSeconds) * hz} 1 1' >${root}/proc/${pid}/stat`
  const tools = join(folder, `bin${++count}`)
  mkdirSync(tools)
  // The clock for process start times does not advance here, and neither does the uptime.
  writeFileSync(join(tools, 'date'), `#!/bin/sh\necho ${now}\n`, { mode: 0o755 })
  const asked = join(tools, 'asked')
  const systemctl = (then: string): void =>
    writeFileSync(
      join(tools, 'systemctl'),
      `#!/bin/sh\necho "$*" >>${asked}\n[ "$1" = restart ] || exit 0\n${then}\n`,
      {
        mode: 0o755,
      },
    )
  execFileSync('sh', [
    '-c',
    `mkdir -p ${root}/proc; echo '100000.00 1.0' >${root}/proc/uptime; ${process_(7, 9_000)}`,
  ])
  const restart: ScriptedChange = {
    kind: 'restart',
    program: 'kubelet',
    startedAt: now - 9_000,
    argv: ['systemctl', 'restart', '--', 'kubelet.service'],
  }
  const script = writeScript([restart])
  const env = { PATH: `${tools}:${process.env.PATH}` }
  systemctl('')
  expect(run(shell, script, root, env)).toMatchObject({
    status: 9,
    stderr: 'kubelet did not come back within 3 s: check its log, then run this again\n',
  })
  systemctl(`rm -r ${root}/proc/7${process_(8, 1)}`)
  expect(run(shell, script, root, env)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('kubelet restarted'),
  })
  expect(run(shell, script, root, env)).toMatchObject({ status: 0 })
  expect(readFileSync(asked, 'utf8').match(/restart -- kubelet.service/g)).toHaveLength(2)
})

test.each(shells)('%s: ends the process of a static pod once, with SIGKILL if needed', async (...shell) => {
  const root = makeRoot()
  const now = Math.floor(Date.now() / 1000)
  const hz = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
  const tools = join(folder, `bin${++count}`)
  mkdirSync(tools)
  // The clock for process start times does not advance here, and neither does the uptime.
  writeFileSync(join(tools, 'date'), `#!/bin/sh\necho ${now}\n`, { mode: 0o755 })
  mkdirSync(join(root, 'proc'), { recursive: true })
  writeFileSync(join(root, 'proc/uptime'), '100000.00 1.0\n')
  const running = (pid: number, ageSeconds: number): void => {
    mkdirSync(join(root, `proc/${pid}`), { recursive: true })
    writeFileSync(join(root, `proc/${pid}/comm`), 'kube-apiserver\n')
    writeFileSync(
      join(root, `proc/${pid}/stat`),
      `${pid} (kube-apiserver) S 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 ${(100_000 - ageSeconds) * hz} 1 1\n`,
    )
  }
  const script = writeScript([
    { kind: 'restart', program: 'kube-apiserver', startedAt: now - 9_000, signal: { killAfterSeconds: 1 } },
  ])
  const env = { PATH: `${tools}:${process.env.PATH}` }
  const child = spawn('sh', ['-c', 'trap "" TERM; while :; do sleep 0.1; done'], { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  await new Promise((done) => setTimeout(done, 300))
  const pid = child.pid ?? 0
  running(pid, 9_000)
  // A second one may be in another pod. Nothing is ended.
  running(1_000_001, 50)
  const refused = run(shell, script, root, env)
  expect([refused.status, refused.stderr]).toEqual([
    9,
    'several processes of kube-apiserver run here: restart the container of the static pod yourself, then run this again\n',
  ])
  expect(child.signalCode).toBeNull()
  rmSync(join(root, 'proc/1000001'), { recursive: true })
  expect(run(shell, script, root, env)).toMatchObject({
    status: 9,
    stderr: 'kube-apiserver did not come back within 3 s: check its log, then run this again\n',
  })
  await vi.waitFor(() => expect(child.signalCode).toBe('SIGKILL'))
  rmSync(join(root, `proc/${pid}`), { recursive: true })
  running(1_000_002, 1)
  // The kubelet has started another one, which is not ended, whatever else runs.
  for (const other of [undefined, 1_000_003]) {
    if (other !== undefined) running(other, 500)
    expect(run(shell, script, root, env)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('kube-apiserver restarted'),
    })
  }
})

const hostile = [
  'a b',
  "it's",
  '"q"',
  '$(touch INJ)',
  '`touch INJ`',
  '; touch INJ #',
  'a\ntouch INJ',
  '&& touch INJ',
  '* ?',
  '-rf',
]

test.each(shells)('%s: executes no part of a name in a change or a fact', (...shell) => {
  const root = join(folder, `root${++count}`)
  const changes = hostile.flatMap((name): ScriptedChange[] => {
    const at = `/etc/${name}`
    const content = Buffer.from(name)
    return [
      { kind: 'make-folder', path: at, mode: 0o755 },
      {
        kind: 'write',
        path: `${at}/${name}`,
        replaces: 'absent',
        sha256: digest(content),
        mode: 0o600,
        content,
      },
      { kind: 'link', path: `${at}/link`, to: name, replaces: 'absent' },
    ]
  })
  mkdirSync(join(root, 'etc'), { recursive: true })
  // All names in one script with changes, and each name in the facts of a script without changes.
  for (const [word, its] of [['w1', changes] as const, ...hostile.map((one) => [one, []] as const)]) {
    const script = join(folder, `script${++count}`)
    mkdirSync(script, { mode: 0o700 })
    const said = { ...facts, node: word, hostname: word, next: word }
    for (const { name, content } of nodeRunbook(said, its)) writeFileSync(join(script, name), content)
    const [program = '', ...words] = shell
    expect(spawnSync(program, [...words, '-n', join(script, 'run.sh')], { encoding: 'utf8' })).toMatchObject({
      status: 0,
      stderr: '',
    })
    const env = { PATH: process.env.PATH, KCERT_ROOT: root }
    const { status, stdout, stderr } = spawnSync(program, [...words, join(script, 'run.sh')], {
      encoding: 'utf8',
      cwd: script,
      env,
    })
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`on the machine with kcert.yaml: ${word}`)
    expect(readdirSync(script).filter((name) => name.includes('INJ'))).toEqual([])
  }
  for (const name of hostile) {
    expect(readFileSync(join(root, 'etc', name, name), 'utf8')).toBe(name)
    expect(readlinkSync(join(root, 'etc', name, 'link'))).toBe(name)
  }
})
