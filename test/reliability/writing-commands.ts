import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BootstrapToken } from '../../src/bootstrap/token.ts'
import { commandConfig } from '../../src/cli/oclif-config.ts'
import { openJournal } from '../../src/rotation-io/journal-file.ts'
import { newFolder, writeInto } from '../../src/system/new-folder.ts'
import { putClusterInfo, putToken, someToken } from '../bootstrap/joining.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { putCluster, putServing, requestsKey } from '../scripts/cluster-session.ts'

// Every command that writes files on this machine, with a command line that makes it write all of them. `rotate-ca`, `renew` and
// `kubelet doctor --fix` write on nodes with the shell functions that test/node/faults.test.ts kills; their local files are here.

/** One command line, and the files that it writes. */
export interface WritingCommand {
  readonly name: string
  /** Resets the server objects that the command needs, whatever earlier runs changed there. */
  readonly reset?: (folder: string) => void
  readonly run: (folder: string) => Promise<number>
  /** The files of the command, or their prefixes if the names contain a time. */
  readonly files: readonly string[]
  /** The allowed exit codes of a second run; default 0 and 5 (every file exists). */
  readonly nextExits?: readonly number[]
  /** The certificate or request, and its key; they match after the command is run again. */
  readonly pair?: readonly [string, string]
  /** Files that a stopped run may leave, and that the next run removes. */
  readonly mayLeave?: readonly string[]
  /** A file whose content is also stored in the cluster. */
  readonly onCluster?: string
  /** Whether it runs over its own files; otherwise it runs in a folder without them. */
  readonly over: boolean
}

type Load = () => Promise<{ default: unknown }>

interface Line {
  readonly load: Load
  readonly words: string
  readonly args: readonly string[]
  readonly files: readonly string[]
  readonly pair?: readonly [string, string]
  readonly mayLeave?: readonly string[]
  readonly onCluster?: string
  readonly nextExits?: readonly number[]
  /** How it runs over its own files: with --force, unless it always or never replaces them. */
  readonly again?: 'force' | 'same' | 'never'
}

interface RunnableCommand {
  id?: string
  new (argv: string[], config: unknown): { _run(): Promise<unknown> }
}

const signer = ['--signer', 'example.com/serving', '--usage', 'server auth']
const ca = ['--ca', 'ca.pem', '--ca-key', 'ca.key']
const cluster = ['--kubeconfig', 'admin.conf']
const kubeadmNode = [
  ...['--control-plane-endpoint', 'k:6443', '--node-name', 'cp1', '--advertise-address', '10.0.0.1'],
  ...['--key-type', 'ECDSA-P256'],
]

const lines: readonly Line[] = [
  {
    load: () => import('../../src/commands/key/generate.ts'),
    words: 'key generate',
    args: ['--out', 'new.key'],
    files: ['new.key'],
  },
  {
    load: () => import('../../src/commands/ca/init.ts'),
    words: 'ca init',
    args: ['--cn', 'x', '--out', 'root.pem', '--key-out', 'root.key'],
    files: ['root.pem', 'root.key', 'root.issuance-log.jsonl'],
    pair: ['root.pem', 'root.key'],
  },
  {
    load: () => import('../../src/commands/ca/init.ts'),
    words: 'ca init --key',
    args: ['--cn', 'x', '--key', 'a.key', '--out', 'root.pem'],
    files: ['root.pem', 'root.issuance-log.jsonl'],
  },
  {
    load: () => import('../../src/commands/ca/sign.ts'),
    words: 'ca sign',
    args: ['a.csr', ...ca, '--profile', 'server', '--out', 'a.pem'],
    files: ['a.pem', 'ca.issuance-log.jsonl'],
  },
  {
    load: () => import('../../src/commands/ca/sign.ts'),
    words: 'ca sign --csr',
    args: ['--csr', 'approved', ...ca, '--out', 'a.pem', ...cluster],
    files: ['a.pem', 'ca.issuance-log.jsonl'],
    // By then the certificate is in the request's status, and --out contains those of one run.
    onCluster: 'a.pem',
    again: 'never',
  },
  {
    load: () => import('../../src/commands/ca/renew.ts'),
    words: 'ca renew',
    args: [...ca],
    files: ['ca.pem', 'ca.issuance-log.jsonl'],
    pair: ['ca.pem', 'ca.key'],
    again: 'same',
  },
  {
    load: () => import('../../src/commands/ca/bundle.ts'),
    words: 'ca bundle',
    args: ['ca.pem', 'server-ca.pem', '--out', 'both.pem'],
    files: ['both.pem'],
  },
  {
    load: () => import('../../src/commands/csr/create.ts'),
    words: 'csr create',
    args: ['--cn', 'x', '--key-out', 'x.key', '--out', 'x.csr'],
    files: ['x.key', 'x.csr'],
    pair: ['x.csr', 'x.key'],
  },
  {
    load: () => import('../../src/commands/csr/create.ts'),
    words: 'csr create -o cfssl',
    args: ['--cn', 'x', '-o', 'cfssl', '--out', 'x.json'],
    files: ['x.json'],
  },
  {
    load: () => import('../../src/commands/csr/create.ts'),
    words: 'csr create -o manifest',
    args: ['--cn', 'x', '--key', 'a.key', ...signer, '-o', 'manifest', '--out', 'x.yaml'],
    files: ['x.yaml'],
  },
  {
    load: () => import('../../src/commands/csr/create.ts'),
    words: 'csr create --kubeadm apiserver-kubelet-client',
    args: ['--kubeadm', 'apiserver-kubelet-client', ...kubeadmNode, '--cert-dir', 'pki'],
    files: ['pki/apiserver-kubelet-client.key', 'pki/apiserver-kubelet-client.csr'],
    pair: ['pki/apiserver-kubelet-client.csr', 'pki/apiserver-kubelet-client.key'],
  },
  {
    load: () => import('../../src/commands/csr/create.ts'),
    words: 'csr create --kubeadm admin.conf',
    args: ['--kubeadm', 'admin.conf', ...kubeadmNode, '--kubeconfig-dir', 'conf'],
    files: ['conf/admin.conf', 'conf/admin.conf.csr'],
  },
  {
    load: () => import('../../src/commands/kubeconfig/create.ts'),
    words: 'kubeconfig create',
    args: [
      '--user',
      'a',
      '--token-file',
      'joining',
      '--server',
      'https://k:6443',
      '--ca',
      'ca.pem',
      '--out',
      'u.conf',
    ],
    files: ['u.conf'],
  },
  {
    load: () => import('../../src/commands/kubeconfig/set-ca.ts'),
    words: 'kubeconfig set-ca',
    args: ['edited.conf', '--ca', 'ca.pem'],
    files: ['edited.conf'],
    // After the first run, the file is already as it should be.
    again: 'never',
  },
  {
    load: () => import('../../src/commands/kubeconfig/set-client.ts'),
    words: 'kubeconfig set-client',
    args: ['edited.conf', '--cert', 'ca.pem', '--key', 'ca.key'],
    files: ['edited.conf'],
    // After the first run, the file is already as it should be.
    again: 'never',
  },
  {
    load: () => import('../../src/commands/inspect.ts'),
    words: 'inspect --output-file',
    args: ['ca.pem', '-o', 'prometheus', '--output-file', 'kcert.prom'],
    files: ['kcert.prom'],
    again: 'same',
  },
  {
    load: () => import('../../src/commands/csr/fetch.ts'),
    words: 'csr fetch',
    args: [
      'issued',
      '--key',
      'a.key',
      '--kubeconfig-out',
      'fetched.conf',
      '--out',
      'fetched.pem',
      ...cluster,
    ],
    files: ['fetched.pem', 'fetched.conf'],
  },
  {
    load: () => import('../../src/commands/csr/fetch.ts'),
    words: 'csr fetch --out-dir',
    args: ['issued', 'issued-2', '--out-dir', 'certs', ...cluster],
    files: ['certs/issued.crt', 'certs/issued-2.crt'],
  },
  {
    load: () => import('../../src/commands/csr/request.ts'),
    words: 'csr request',
    args: [
      ...['--user', 'ann', '--key-out', 'ann.key', '--out', 'ann.pem', '--kubeconfig-out', 'ann.conf'],
      ...['--wait', '5m', ...cluster],
    ],
    files: ['ann.key', 'ann.csr', 'ann.pem', 'ann.conf'],
    pair: ['ann.pem', 'ann.key'],
    mayLeave: ['ann.key.new', 'ann.csr.new'],
    // The object of the first run has its name, and the existing pair is kept.
    nextExits: [0, 3],
  },
  {
    load: () => import('../../src/commands/token/create.ts'),
    words: 'token create',
    args: ['--out', 'join.sh', ...cluster],
    files: ['join.sh'],
  },
  {
    load: () => import('../../src/commands/cluster-info/update.ts'),
    words: 'cluster-info update',
    args: [
      '--ca',
      'server-ca.pem',
      '--ca',
      'ca.pem',
      '--backup',
      'was.yaml',
      '--yes',
      '--wait',
      '5s',
      ...cluster,
    ],
    files: ['was.yaml'],
    again: 'never',
  },
  {
    load: () => import('../../src/commands/bootstrap/kubeconfig.ts'),
    words: 'bootstrap kubeconfig',
    args: ['--token-file', 'joining', '--ca', 'server-ca.pem', '--out', 'bootstrap.conf', ...cluster],
    files: ['bootstrap.conf'],
  },
  {
    load: () => import('../../src/commands/kubelet/manage.ts'),
    words: 'kubelet manage --once',
    args: [
      ...['--user', 'ci', '--cert-dir', 'pairs', '--pair-name', 'ci', '--once', '--force-renewal'],
      ...['--metrics-file', 'ci.prom', '--exec', 'true', ...cluster],
    ],
    files: ['pairs/ci-current.pem', 'pairs/ci-2', 'ci.prom'],
    // The temporary link next to the link, which a kubelet uses too.
    mayLeave: ['pairs/ci-updated.pem', 'pairs/.ci.told'],
    again: 'same',
  },
]

/** The start folder of all command lines, the server that some of them use, and the command lines. */
export class WritingCommands {
  readonly commands: readonly WritingCommand[]
  readonly #server: FakeApiServer
  readonly #approver: NodeJS.Timeout
  readonly #joining: BootstrapToken

  private constructor(server: FakeApiServer, approver: NodeJS.Timeout, joining: BootstrapToken) {
    this.#joining = joining
    this.#server = server
    this.#approver = approver
    this.commands = [...lines.flatMap((line) => this.#both(line)), ...rotationWriters]
  }

  /** Fills the folder with the input files. */
  static async in(folder: string): Promise<WritingCommands> {
    const server = await startApiServer({ signer: 'controller' })
    putCluster(server)
    const joining = someToken()
    putToken(server, joining)
    putClusterInfo(server, [joining])
    mkdirSync(folder, { recursive: true })
    const file = (name: string): string => join(folder, name)
    writeFileSync(file('joining'), `${joining.id}.${joining.secret}\n`, { mode: 0o600 })
    writeFileSync(file('server-ca.pem'), server.caPem)
    server.writeKubeconfig(file('admin.conf'))
    writeFileSync(file('edited.conf'), `${readFileSync(file('admin.conf'), 'utf8')}\n`, { mode: 0o600 })
    const made = async (load: Load, words: string, args: readonly string[]): Promise<void> => {
      const exit = await runHere(load, words, absolute(args, folder))
      if (exit !== 0) throw new Error(`${words} ended with ${exit}: ${said.stderr}`)
    }
    await made(() => import('../../src/commands/key/generate.ts'), 'key generate', ['--out', 'a.key'])
    await made(() => import('../../src/commands/ca/init.ts'), 'ca init', [
      ...['--cn', 'ca', '--out', 'ca.pem', '--key-out', 'ca.key'],
    ])
    const request = ['--cn', 'issued', '--key', 'a.key', '--out', 'a.csr']
    await made(() => import('../../src/commands/csr/create.ts'), 'csr create', request)
    const approver = setInterval(() => approveAll(server), 5)
    return new WritingCommands(server, approver, joining)
  }

  async close(): Promise<void> {
    clearInterval(this.#approver)
    await this.#server.close()
  }

  #reset(folder: string): void {
    const server = this.#server
    putClusterInfo(server, [this.#joining])
    for (const object of server.all(requestsKey)) server.remove(requestsKey, object.metadata.name ?? '')
    const request = readFileSync(join(folder, 'a.csr')).toString('base64')
    const client = {
      signerName: 'kubernetes.io/kube-apiserver-client',
      usages: ['client auth'],
      username: 'x',
    }
    for (const name of ['issued', 'issued-2']) putServing(server, name, { ...client, request }, approved)
    putServing(server, 'approved', { signerName: 'example.com/serving' }, approved)
  }

  #both({
    load,
    words,
    args,
    files,
    pair,
    mayLeave,
    onCluster,
    nextExits,
    again = 'force',
  }: Line): WritingCommand[] {
    const command = (over: boolean): WritingCommand => ({
      name: over ? `${words}, over its own files` : words,
      files,
      ...(pair && { pair }),
      ...(mayLeave && { mayLeave }),
      ...(onCluster && { onCluster }),
      ...(nextExits && over && { nextExits }),
      over,
      reset: (folder) => this.#reset(folder),
      run: (folder) =>
        runHere(load, words, [...absolute(args, folder), ...(over && again === 'force' ? ['--force'] : [])]),
    })
    return again === 'never' ? [command(false)] : [command(false), command(true)]
  }
}

const approved = { status: { conditions: [{ type: 'Approved', status: 'True' }] } }

function approveAll(server: FakeApiServer): void {
  for (const object of server.all(requestsKey)) {
    const { status } = object as { status?: { conditions?: unknown } }
    if (status?.conditions === undefined) server.put(requestsKey, { ...object, ...approved })
  }
}

/** The files that rotate-ca writes on the local machine. */
const rotationWriters: readonly WritingCommand[] = [
  {
    name: 'rotate-ca runbook',
    files: ['phase-1/README.txt', 'phase-1/cp1/run.sh', 'phase-1/cp1/ca.key'],
    over: false,
    run: (folder) =>
      exitOf(() => {
        newFolder(join(folder, 'phase-1'))
        writeInto(join(folder, 'phase-1'), [
          { path: 'README.txt', content: 'first cp1\n' },
          { path: 'cp1/run.sh', content: '#!/bin/sh\n' },
          { path: 'cp1/ca.key', content: keyForRunbook(folder) },
        ])
      }),
  },
  ...[false, true].map((over) => ({
    name: over ? 'rotate-ca, the next line of its journal' : 'rotate-ca, the first line of its journal',
    files: ['rotation.jsonl'],
    over,
    run: (folder: string) =>
      exitOf(async () => {
        using journal = await openJournal(join(folder, 'rotation.jsonl'))
        await journal.append(`{"over":${over}}\n`)
      }),
  })),
]

function keyForRunbook(folder: string): string {
  return readFileSync(join(folder, 'a.key'), 'utf8')
}

async function exitOf(act: () => unknown): Promise<number> {
  try {
    await act()
    return 0
  } catch (error) {
    return (error as { exitCode?: number }).exitCode ?? 1
  }
}

/** Replaces file names with paths, and keeps other arguments. */
function absolute(args: readonly string[], folder: string): string[] {
  const isPath = (arg: string): boolean =>
    /^[\w-]+\.(?:pem|key|csr|conf|yaml|json|prom|sh)$/.test(arg) || plainPaths.has(arg)
  // After --kubeadm, "admin.conf" is a row of kubeadm's table.
  return args.map((arg, index) => (isPath(arg) && args[index - 1] !== '--kubeadm' ? join(folder, arg) : arg))
}
const plainPaths = new Set(['joining', 'pki', 'conf', 'certs', 'pairs'])

/** The output of the last command, to find the reason of an exit code. */
export const said = { stdout: '', stderr: '' }

/** Runs a command in this process and returns its exit code. */
async function runHere(load: Load, words: string, args: readonly string[]): Promise<number> {
  const Command = (await load()).default as RunnableCommand
  const held = { stdout: process.stdout.write, stderr: process.stderr.write, exitCode: process.exitCode }
  said.stdout = ''
  said.stderr = ''
  for (const name of ['stdout', 'stderr'] as const)
    process[name].write = ((text: string, ...rest: unknown[]) => {
      said[name] += text
      const callback = rest.find((one) => typeof one === 'function') as (() => void) | undefined
      callback?.()
      return true
    }) as typeof process.stdout.write
  try {
    Command.id = words
      .split(' ')
      .filter((word) => !word.startsWith('-'))
      .join(':')
    process.exitCode = 0
    await new Command([...args], commandConfig('0'))._run()
    return Number(process.exitCode ?? 0)
  } finally {
    process.stdout.write = held.stdout
    process.stderr.write = held.stderr
    process.exitCode = held.exitCode
    for (const name of ['stdout', 'stderr'] as const) process[name].removeAllListeners('error')
  }
}

/** Makes a folder a copy of another. */
export function copyOf(template: string, folder: string): void {
  cpSync(template, folder, { recursive: true, verbatimSymlinks: true })
}
