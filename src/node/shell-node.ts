import { hash, randomBytes } from 'node:crypto'
import { argumentVector, type CommandLine, commandLine, embed } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type {
  ClockReading,
  ComponentName,
  CopiedKey,
  Expected,
  FileContent,
  FileFacts,
  FolderListing,
  FreeSpace,
  KeyOf,
  NodeAccess,
  NodeCall,
  NodeIdentity,
  PodProcess,
  ProcessFacts,
  RunOptions,
  RunResult,
  Sha256,
  UnitFacts,
  WriteOptions,
  Written,
} from '../pki/node-access.ts'
import type { Clock } from '../system/clock.ts'
import { readFileAnswer, readListing, readPodProcesses, readProcesses, tornFile } from './answers.ts'
import { type Answer, encodeContent, shellWord } from './protocol.ts'
import { lastLines } from './session.ts'
import { SessionPool } from './session-pool.ts'
import type { Transport } from './transport.ts'
import { writeFailure } from './write-failure.ts'

export interface ShellNodeOptions {
  /** The name in the inventory. */
  readonly name: string
  readonly transport: Transport
  readonly clock: Clock
  /** The longest wait for the answer to any request (default as long as the request allows). */
  readonly mostMs?: number | undefined
}

const largestByDefault = 1024 * 1024
// A manifest, a kubeconfig or a key has a few thousand bytes; etcd accepts no object above 1.5 MiB.
const largestWrite = 4 * 1024 * 1024

/** Returns access to a node through shells that the transport starts there on demand. */
export function shellNode(options: ShellNodeOptions): NodeAccess {
  return new ShellNode(options)
}

class ShellNode implements NodeAccess {
  readonly name: string
  private readonly clockHere: Clock
  private readonly pool: SessionPool

  constructor({ name, transport, clock, mostMs }: ShellNodeOptions) {
    this.name = name
    this.clockHere = clock
    this.pool = new SessionPool(name, transport, mostMs)
  }

  async identity(call: NodeCall = {}): Promise<NodeIdentity> {
    const said = fieldsOf(await this.ask(['kc_identity'], call))
    const uid = Number(said.get('uid'))
    return {
      hostname: said.get('hostname') ?? '',
      bootId: said.get('boot') ?? '',
      uid,
      isRoot: uid === 0,
      ...(uid !== 0 && { maySudo: said.has('sudo') }),
    }
  }

  async run(argv: readonly string[], { stdin = '', ...call }: RunOptions = {}): Promise<RunResult> {
    const answer = await this.pool.request(command('kc_run', ...argv), encodeContent(stdin), call, 'once')
    const blocks = new Map(answer.records.map(({ name, block }) => [name, block]))
    return {
      status: Number(fieldsOf(answer).get('status')),
      stdout: blocks.get('stdout') ?? Buffer.alloc(0),
      stderr: (blocks.get('stderr') ?? '').toString().trimEnd(),
    }
  }

  async readFiles(
    paths: readonly string[],
    { largestBytes = largestByDefault, ...call }: NodeCall & { largestBytes?: number } = {},
  ): Promise<FileContent[]> {
    const read = async (): Promise<FileContent[]> =>
      readFileAnswer(await this.files(`${largestBytes}`, paths, call), paths) as FileContent[]
    const found = await read()
    if (!found.some(tornFile)) return found
    // Another process wrote to a file in place during the read. Twice in a row means that it writes continuously.
    const again = await read()
    return again.map((file) =>
      tornFile(file)
        ? { path: file.path, found: 'unreadable', reason: 'it changed while kcert read it' }
        : file,
    )
  }

  async statFiles(
    paths: readonly string[],
    { sha256 = false, ...call }: NodeCall & { sha256?: boolean } = {},
  ): Promise<FileFacts[]> {
    return readFileAnswer(await this.files(sha256 ? 'sum' : 'stat', paths, call), paths) as FileFacts[]
  }

  async listFolder(path: string, call: NodeCall = {}): Promise<FolderListing> {
    const folder = checkedPath(path)
    return readListing(await this.ask(['kc_list', folder === '/' ? '/.' : folder], call), path)
  }

  async matchPaths(patterns: readonly string[], call: NodeCall = {}): Promise<string[]> {
    const { records } = await this.ask(['kc_match', ...patterns.map(checkedPath)], call)
    return records.map(({ rest }) => rest)
  }

  async writeFile(
    path: string,
    content: Uint8Array | string,
    options: WriteOptions & { readonly key?: KeyOf },
  ): Promise<Written> {
    const bytes = Buffer.from(content as Uint8Array)
    if (bytes.length > largestWrite) {
      throw new KcertError('KCERT_FILE_TOO_LARGE', `${bytes.length} bytes are too many for ${path}`, {
        why: `kcert writes at most ${largestWrite / 1024 / 1024} MiB to a file on a node`,
      })
    }
    const { key, ...others } = options
    if (key === undefined) return this.write(path, hash('sha256', bytes), others, encodeContent(bytes), '')
    const its = { ...key, from: '', sha256: hash('sha256', key.content) }
    const both = `${encodeContent(key.content)}-${encodeContent(bytes)}`
    return this.write(path, hash('sha256', bytes), { ...others, key: its }, both, '')
  }

  async copyFile(
    from: string,
    to: string,
    { sha256, ...options }: WriteOptions & { sha256: Sha256; key?: CopiedKey },
  ): Promise<Written> {
    return this.write(to, sha256, options, '', checkedPath(from))
  }

  async linkFile(
    path: string,
    target: string,
    { replaces, ...call }: NodeCall & { replaces: Expected },
  ): Promise<boolean> {
    const words = ['kc_link', checkedPath(path), nonce(), target, wanted(replaces)]
    return this.outcome(await this.change(words, path, call), path, ['wrote', 'same']).name === 'wrote'
  }

  async removeFile(path: string, { holds, ...call }: NodeCall & { holds: Expected }): Promise<boolean> {
    const answer = await this.change(['kc_remove', checkedPath(path), wanted(holds)], path, call)
    return this.outcome(answer, path, ['removed', 'absent']).name === 'removed'
  }

  async makeFolder(path: string, { mode, ...call }: NodeCall & { mode: number }): Promise<void> {
    await this.change(['kc_mkdir', checkedPath(path), mode.toString(8)], path, call)
  }

  async removeFolder(path: string, call: NodeCall = {}): Promise<boolean> {
    const answer = await this.change(['kc_rmdir', checkedPath(path)], path, call)
    return this.outcome(answer, path, ['removed', 'absent']).name === 'removed'
  }

  async unit(name: string, call: NodeCall = {}): Promise<UnitFacts> {
    const said = await this.systemctl(['show', `--property=${unitProperties.join(',')}`, '--', name], call)
    return unitFacts(name, said)
  }

  async restartUnit(name: string, call: NodeCall = {}): Promise<UnitFacts> {
    const before = await this.systemctl(['show', '--property=NeedDaemonReload', '--', name], call)
    if (/^NeedDaemonReload=yes$/m.test(before)) await this.systemctl(['daemon-reload'], call)
    await this.systemctl(['restart', '--', name], call)
    return this.unit(name, call)
  }

  async processes(programs: readonly ComponentName[], call: NodeCall = {}): Promise<ProcessFacts[]> {
    // The kernel keeps 15 characters of a program's name.
    const names = [...new Set(programs.map((program) => program.slice(0, 15)))]
    return readProcesses(await this.ask(['kc_processes', ...names], call), programs)
  }

  async podProcesses(podUids: readonly string[], call: NodeCall = {}): Promise<PodProcess[]> {
    // The kubelet's systemd driver writes "_" for "-" in names of control groups.
    const pods = podUids.map((uid) => `${uid}/${uid.replaceAll('-', '_')}`)
    return readPodProcesses(await this.ask(['kc_pods', '/proc', ...pods], call))
  }

  async clock(call: NodeCall = {}): Promise<ClockReading> {
    // The first answer may have to wait for the connection; only the round trip should count.
    await this.ask([':'], call)
    const sent = this.clockHere().getTime()
    const said = fieldsOf(await this.ask(['kc_clock'], call)).get('now') ?? ''
    const received = this.clockHere().getTime()
    const at = Math.floor(Number(said) * 1000)
    // A time without fractions may be up to a second later than printed.
    const grainMs = said.includes('.') ? 1 : 1000
    return {
      at: new Date(at),
      aheadMs: { atLeast: at - received, atMost: at + grainMs - sent },
      roundTripMs: received - sent,
    }
  }

  async freeSpace(path: string, call: NodeCall = {}): Promise<FreeSpace> {
    const { status, stdout, stderr } = await this.run(['df', '-Pk', checkedPath(path)], call)
    // "/dev/sda1  41152736 8123456 31155000  21% /", in KiB; with -P, a long device name is never on a separate line.
    const numbers = /\s(\d+)\s+\d+\s+(\d+)\s+\d+%\s/.exec(Buffer.from(stdout).toString())
    if (status !== 0 || numbers === null) throw this.failed(commandLine`df`, stderr)
    return { path, totalBytes: Number(numbers[1]) * 1024, availableBytes: Number(numbers[2]) * 1024 }
  }

  async close(): Promise<void> {
    await this.pool.close()
  }

  private files(what: string, paths: readonly string[], call: NodeCall): Promise<Answer> {
    return this.ask(['kc_read', what, ...paths.map(checkedPath)], call)
  }

  private async write(
    path: string,
    sha256: Sha256,
    { replaces, mode, owner, key, ...call }: WriteOptions & { readonly key?: CopiedKey },
    input: string,
    from: string,
  ): Promise<Written> {
    const words = [
      ...(key === undefined
        ? ['kc_write']
        : ['kc_write_pair', checkedPath(key.path), wanted(key.replaces), key.sha256, key.from]),
      ...[checkedPath(path), nonce(), wanted(replaces), sha256],
      mode === undefined ? '' : mode.toString(8),
      owner === undefined ? '' : `${owner.uid}:${owner.gid}`,
      from,
    ]
    const answer = await this.change(words, path, call, input)
    const { name, rest: before } = this.outcome(answer, path, ['wrote', 'same'])
    const real = answer.records.find((record) => record.name === 'path')?.rest
    return { path: real ?? path, sha256, changed: name === 'wrote', before }
  }

  /** Returns the record of what a change did. Throws KCERT_NODE_FILE_NOT_WRITTEN if there is none. */
  private outcome({ records }: Answer, path: string, names: readonly string[]): Answer['records'][number] {
    const found = records.find(({ name }) => names.includes(name))
    if (found === undefined)
      throw writeFailure(this.name, path, 'unknown', 'the shell did not say what it changed')
    return found
  }

  /** Sends a request that reads. */
  private ask([name = '', ...words]: readonly string[], call: NodeCall): Promise<Answer> {
    return this.pool.request(command(name, ...words), '', call, 'again')
  }

  /**
   * Sends a request that changes a file. It may be sent again too, because each function of the script compares first: a change that
   * an earlier attempt made is not made again, and neither attempt replaces what another program wrote.
   */
  private async change(
    [name = '', ...words]: readonly string[],
    path: string,
    call: NodeCall,
    content = '',
  ): Promise<Answer> {
    const answer = await this.pool.request(command(name, ...words), content, call, 'again')
    const last = answer.records.at(-1)
    if (answer.status === 0) return answer
    throw last?.name === 'fail'
      ? writeFailure(this.name, path, last.rest, last.block?.toString().trim() ?? '')
      : writeFailure(this.name, path, 'unknown', `the shell exited with status ${answer.status}`)
  }

  private async systemctl(args: readonly string[], call: NodeCall): Promise<string> {
    const { status, stdout, stderr } = await this.run(['systemctl', ...args], call)
    if (status === 0) return Buffer.from(stdout).toString()
    throw this.failed(commandLine`systemctl ${argumentVector(args)}`, stderr)
  }

  private failed(what: CommandLine, stderr: string): KcertError {
    return new KcertError('KCERT_NODE_COMMAND_FAILED', `${what} failed on node "${this.name}"`, {
      why: stderr === '' ? 'the command printed no error' : lastLines(stderr),
      next: commandLine`${embed(what)}`,
    })
  }
}

const unitProperties = ['LoadState', 'FragmentPath', 'DropInPaths']

function unitFacts(name: string, said: string): UnitFacts {
  const of = new Map(
    said.split('\n').map((line) => {
      const equals = line.indexOf('=')
      return [line.slice(0, equals), line.slice(equals + 1)]
    }),
  )
  const fragmentPath = of.get('FragmentPath')
  return {
    name,
    loadState: of.get('LoadState') ?? '',
    ...(fragmentPath && { fragmentPath }),
    dropInPaths: (of.get('DropInPaths') ?? '').split(' ').filter((path) => path !== ''),
  }
}

function command(name: string, ...words: readonly string[]): string {
  return [name, ...words.map(shellWord)].join(' ')
}

function fieldsOf({ records }: Answer): Map<string, string> {
  return new Map(records.map(({ name, rest }) => [name, rest]))
}

function wanted(expected: Expected): string {
  if (expected === 'anything') return 'any'
  if (expected === 'absent') return 'absent'
  return 'sha256' in expected ? `sum:${expected.sha256}` : `link:${expected.linkTarget}`
}

function checkedPath(path: string): string {
  if (!path.startsWith('/')) {
    throw new KcertError('KCERT_USAGE', `${JSON.stringify(path)} is not an absolute path`, {
      why: 'paths on a node must be absolute',
    })
  }
  return path.length > 1 ? path.replace(/\/+$/, '') || '/' : path
}

function nonce(): string {
  return randomBytes(6).toString('hex')
}
