import { hash } from 'node:crypto'
import type {
  ComponentName,
  FileAttributes,
  FileContent,
  FileFacts,
  FolderEntry,
  FolderListing,
  PodProcess,
  ProcessFacts,
} from '../pki/node-access.ts'
import type { Answer, AnswerRecord } from './protocol.ts'

// Converts the records of an answer to the types of the port.

/** Returns the files of a `kc_read`, in the order of the request. */
export function readFileAnswer({ records }: Answer, paths: readonly string[]): (FileContent | FileFacts)[] {
  const groups: AnswerRecord[][] = []
  for (const record of records) {
    if (record.name === 'file') groups.push([])
    else groups.at(-1)?.push(record)
  }
  return paths.map((path, index) => readFileGroup(path, groups[index] ?? []))
}

/** Returns true for a file whose content does not have its reported size. Files of /proc report size 0 and have more. */
export function tornFile(file: FileContent): boolean {
  return file.found === 'file' && file.sizeBytes !== 0 && file.sizeBytes !== file.content.length
}

function readFileGroup(path: string, records: readonly AnswerRecord[]): FileContent | FileFacts {
  const of = new Map(records.map((record) => [record.name, record]))
  const link = of.get('link')
  const linked = of.get('linked')
  const name = {
    path,
    ...(link && { linkTarget: link.rest }),
    ...(linked && { linkedAt: timeOf(linked.rest) }),
  }
  const reason = of.get('error')?.rest
  if (reason !== undefined) return { ...name, found: 'unreadable', reason }
  const stat = of.get('stat')
  if (stat === undefined) return { ...name, found: 'absent' }
  const { kind, ...attributes } = readStat(stat.rest.split(' '))
  // After links are followed, a path never leads to a link.
  if (kind !== 'file') return { ...name, found: kind === 'folder' ? 'folder' : 'special', ...attributes }
  const content = of.get('data')?.block
  if (content !== undefined)
    return { ...name, found: 'file', ...attributes, sha256: hash('sha256', content), content }
  const sum = of.get('sum')?.rest
  return { ...name, found: 'file', ...attributes, ...(sum !== undefined && { sha256: sum }) }
}

/** Returns a folder's entries, sorted by name. */
export function readListing({ records }: Answer, path: string): FolderListing {
  const found = records[0]?.name
  if (found === 'absent' || found === 'not-a-folder' || found === 'unreadable') return { found, path }
  const targets = new Map<string, string>()
  for (const [index, { name, rest }] of records.entries()) {
    if (name === 'link') targets.set(baseName(rest), records[index + 1]?.rest ?? '')
  }
  const entries = records
    .filter(({ name }) => name === 'entry')
    .map(({ rest }): FolderEntry => {
      const fields = rest.split(' ')
      const name = baseName(fields.slice(5).join(' '))
      const linkTarget = targets.get(name)
      return { name, ...readStat(fields), ...(linkTarget !== undefined && { linkTarget }) }
    })
  return { found: 'folder', path, entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)) }
}

// The file type in st_mode (inode(7)), as the number above its twelve permission bits.
const kinds: ReadonlyMap<number, FolderEntry['kind']> = new Map([
  [4, 'folder'],
  [8, 'file'],
  [10, 'link'],
])

/** Reads "81a4 0 0 1234 1700000000.123": st_mode in hexadecimal, owner, group, size, modification time. */
function readStat([mode = '', uid, gid, size, modified]: readonly string[]): FileAttributes & {
  kind: FolderEntry['kind']
} {
  const bits = Number.parseInt(mode, 16)
  return {
    kind: kinds.get(bits >> 12) ?? 'special',
    mode: bits & 0o7777,
    uid: Number(uid),
    gid: Number(gid),
    sizeBytes: Number(size),
    modifiedAt: timeOf(modified),
  }
}

function timeOf(seconds: string | undefined): Date {
  // Three decimals times a thousand may be slightly below the whole number.
  return new Date(Math.floor(Number(seconds) * 1000 + 1e-3))
}

/** Returns the processes of a `kc_processes` that run one of these programs. */
export function readProcesses({ records }: Answer, programs: readonly ComponentName[]): ProcessFacts[] {
  const number = (name: string): number => Number(records.find((record) => record.name === name)?.rest)
  const bootedAt = number('now') - number('uptime')
  const found: ProcessFacts[] = []
  for (const [index, { name, rest }] of records.entries()) {
    const argv = records[index + 1]?.name === 'argv' ? records[index + 1]?.block : undefined
    if (name !== 'process' || argv === undefined) continue
    const words = argv.toString('utf8').split('\0').slice(0, -1)
    // In hyperkube and k3s the component is the first argument; kcert supports neither.
    const program = programs.find((known) => known === baseName(words[0] ?? ''))
    if (program === undefined) continue
    // The name in parentheses may contain any character. The fields after it count from 3; field 22 is the start in ticks
    // (proc_pid_stat(5)).
    const startTicks = Number(rest.slice(rest.lastIndexOf(')') + 2).split(' ')[22 - 3])
    found.push({
      program,
      pid: Number.parseInt(rest, 10),
      startTicks,
      startedAt: new Date(Math.round((bootedAt + startTicks / number('hz')) * 1000)),
      argv: words,
    })
  }
  return found
}

// The script's limit.
const mostSettingsBytes = 4_000
const mostBuildLines = 40

/** Returns the processes of a `kc_pods`. Truncated output counts as unread. */
export function readPodProcesses({ records }: Answer): PodProcess[] {
  const number = (name: string): number => Number(records.find((record) => record.name === name)?.rest)
  const groups: Map<string, AnswerRecord>[] = []
  for (const record of records) {
    if (record.name === 'process') groups.push(new Map())
    groups.at(-1)?.set(record.name, record)
  }
  const builds = new Map(
    groups.flatMap((of) => (of.has('build') ? [[of.get('exe')?.rest, buildIn(of.get('build')?.block)]] : [])),
  )
  return groups.map((of): PodProcess => {
    const rest = (name: string): string => of.get(name)?.rest ?? ''
    const stat = rest('process')
    const startTicks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[22 - 3])
    const container = rest('group')
      .match(/(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g)
      ?.at(-1)
    const build = builds.get(rest('exe'))
    const settings = settingsIn(of.get('settings')?.block)
    return {
      podUid: rest('pod'),
      ...(container && { container }),
      isFirst: /\d\s+1$/.test(rest('nspid')),
      ageMs: Math.round((number('uptime') - startTicks / number('hz')) * 1000),
      ...(build && { build }),
      ...(settings && { settings }),
    }
  })
}

function buildIn(block: Buffer | undefined): string[] | undefined {
  const lines = linesOf(block)
  // grep exits with 0 if it found a line, and 1 if it found none.
  const isWhole = lines.length <= mostBuildLines && /^status [01]$/.test(lines.at(-1) ?? '')
  return isWhole ? lines.slice(0, -1) : undefined
}

function settingsIn(block: Buffer | undefined): string[] | undefined {
  const lines = linesOf(block)
  const isWhole = block !== undefined && block.length < mostSettingsBytes && !lines.includes('unread')
  return isWhole ? lines : undefined
}

function linesOf(block: Buffer | undefined): string[] {
  return (block?.toString('utf8') ?? '').split('\n').filter((line) => line !== '')
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
