import { lstatSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Context } from '../../cli/context.ts'
import { descriptorOf, readPipe } from '../../cli/input.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { Source, UnreadableSource } from '../../inspection/source.ts'
import { isLarge, tuneForManyCertificates } from '../../system/engine.ts'
import { readFile, tooLargeFix } from '../../system/files.ts'
import { isFolder, readFolder } from '../../system/folders.ts'

export interface TargetReading {
  /** The error of each target that could not be read at all. */
  readonly failed: readonly KcertError[]
  /** The number of targets that were read, at least in part. */
  readonly read: number
}

interface TargetOptions {
  readonly context: Context
  readonly timeoutMs: number
  /** True if the program does more than read the targets: then V8 is not tuned for many certificates. */
  readonly isPart?: true
}

type Visit = (input: Source | UnreadableSource) => Promise<void> | void

// Enough to wait for many slow servers at once, and few enough for any network.
export const mostDialsAtOnce = 16

interface SortedTargets {
  readonly folders: Set<string>
  readonly files: Set<string>
  /** Standard input and the pipes of bash's `<(command)`, by descriptor. */
  readonly descriptors: Map<number, string>
  readonly servers: Set<string>
}

/**
 * Reads all targets and passes each piece to `visit`: files, folders (walked), "-" for standard input, and
 * host:port for the served chain. A file takes precedence over a host:port of the same name. A target named twice is read once.
 */
export async function readTargets(
  targets: readonly string[],
  options: TargetOptions,
  visit: Visit,
): Promise<TargetReading> {
  const sorted = sortTargets(targets)
  const failed: KcertError[] = []
  const seen = new Set<string>()
  // A single walk visits nothing twice.
  const mayRepeat = sorted.folders.size + sorted.files.size > 1
  let read = 0

  if (sorted.folders.size > 0 && !options.isPart) tuneForManyCertificates()
  // Folders come first: a file in one is read as a part of it, so that its role there is known, even if the file is also named.
  for (const folder of sorted.folders) {
    let isClosed = false
    for (const input of readFolder(folder)) {
      const path = input.file?.path
      if ('reason' in input && input.isFolder && path === input.root) {
        isClosed = true
        failed.push(unreadableTarget(input))
      }
      if (path !== undefined && mayRepeat) {
        if (seen.has(path)) continue
        seen.add(path)
      }
      // Await only promises: 10,000 turns of the event loop cost more than the walk.
      const visited = visit(input)
      if (visited !== undefined) await visited
    }
    if (!isClosed) read++
  }
  for (const file of sorted.files) {
    const path = resolve(file)
    if (seen.has(path)) continue
    seen.add(path)
    await one(readFile(file))
  }
  for (const [descriptor, name] of sorted.descriptors) {
    await one(await readPipe(descriptor === 0 ? '-' : name, descriptor, options.context))
  }
  await readServers(sorted.servers, options, one, failed)
  return { failed, read }

  async function one(input: Source | UnreadableSource): Promise<void> {
    // A dangling link is a valid result: the report explains it.
    if ('bytes' in input && isLarge(input.bytes) && !options.isPart) tuneForManyCertificates()
    const isAnswer = !('reason' in input) || input.reason === 'dangling-link'
    if (isAnswer) read++
    else failed.push(unreadableTarget(input))
    await visit(input)
  }
}

/** Returns the files of $KUBECONFIG, in order. */
export function listedKubeconfigs({ env }: Context): string[] {
  return (env.KUBECONFIG ?? '').split(':').filter((path) => path !== '')
}

/** Returns the existing default targets: kubeconfigs, kubeadm's folder, the kubelet's folder. */
export function defaultTargets(context: Context): string[] {
  const { home } = context
  const listed = listedKubeconfigs(context)
  const own = home === undefined ? [] : [`${home}/.kube/config`]
  const targets = [...listed, ...own, '/etc/kubernetes', '/var/lib/kubelet/pki'].filter(exists)
  if (targets.length > 0) return targets
  throw new KcertError('KCERT_USAGE', 'no target given', {
    why: `none of the defaults exists: $KUBECONFIG, ${[...own, '/etc/kubernetes', '/var/lib/kubelet/pki'].join(', ')}`,
    next: 'kcert inspect --help',
  })
}

function sortTargets(targets: readonly string[]): SortedTargets {
  const sorted: SortedTargets = {
    folders: new Set(),
    files: new Set(),
    descriptors: new Map(),
    servers: new Set(),
  }
  for (const target of targets) {
    if (target === '') {
      throw new KcertError('KCERT_USAGE', 'a target is an empty string', {
        why: 'a shell variable may be unset',
        next: 'kcert inspect --help',
      })
    }
    const descriptor = descriptorOf(target)
    if (descriptor !== undefined) sorted.descriptors.set(descriptor, target)
    else if (isFolder(target)) sorted.folders.add(target)
    else if (!looksLikeServer(target) || exists(target)) sorted.files.add(target)
    else sorted.servers.add(target)
  }
  return sorted
}

// Only a quick check, so that reading files does not load the network code: parseEndpoint decides.
function looksLikeServer(target: string): boolean {
  return /^https:\/\/|^[^/]+:\d+$/.test(target)
}

function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined
  } catch {
    // This user may not search a folder of the path. Reading it reports the error.
    return true
  }
}

async function readServers(
  servers: ReadonlySet<string>,
  { timeoutMs }: TargetOptions,
  one: (input: Source | UnreadableSource) => Promise<void>,
  failed: KcertError[],
): Promise<void> {
  if (servers.size === 0) return
  const [{ parseEndpoint }, { readServed }, { default: pMap }] = await Promise.all([
    import('../../tls/endpoint.ts'),
    import('../../tls/served.ts'),
    import('p-map'),
  ])
  const dial = async (target: string): Promise<Source | UnreadableSource | KcertError> => {
    const endpoint = parseEndpoint(target)
    if (!endpoint) return readFile(target)
    return readServed(endpoint, timeoutMs).catch((error: unknown) => {
      if (error instanceof KcertError) return error
      throw error
    })
  }
  for (const answer of await pMap(servers, dial, { concurrency: mostDialsAtOnce })) {
    if (answer instanceof KcertError) failed.push(answer)
    else await one(answer)
  }
}

function unreadableTarget({ name, reason, detail }: UnreadableSource): KcertError {
  switch (reason) {
    case 'permission':
      return new KcertError('KCERT_FILE_UNREADABLE', `${name} cannot be read`, {
        why: detail,
        next: commandLine`sudo kcert inspect ${name}`,
      })
    case 'too-large':
      return new KcertError('KCERT_FILE_TOO_LARGE', `${name} ${detail}`, {
        why: 'it is read into memory',
        fix: tooLargeFix,
      })
    case 'not-a-file':
      return new KcertError('KCERT_FILE_UNREADABLE', `${name} ${detail}`, {
        why: 'kcert opens no devices, sockets and FIFOs by itself: some have no end, and some block forever',
        fix: 'pass its content on standard input',
        next: commandLine`kcert inspect - < ${name}`,
      })
    case 'io':
      return new KcertError('KCERT_FILE_UNREADABLE', `${name} cannot be read`, {
        why: detail,
        next: commandLine`ls -l ${dirname(name)}`,
      })
    default:
      return notFound(name)
  }
}

function notFound(name: string): KcertError {
  const [, host] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#@]+)/i.exec(name) ?? []
  if (host !== undefined)
    return new KcertError('KCERT_FILE_NOT_FOUND', `${name} is neither a file nor a TLS server`, {
      why: 'a server is named as HOST:PORT or https://HOST',
      next: commandLine`kcert inspect ${`https://${host}`}`,
    })
  const mayBeServer = /^[\w-]+(?:\.[\w-]+)+$/.test(name)
  return new KcertError('KCERT_FILE_NOT_FOUND', `${name} does not exist`, {
    why: mayBeServer
      ? 'no file has that name, and a server is named with its port'
      : 'no file or folder has that name',
    next: mayBeServer ? commandLine`kcert inspect ${name}:6443` : commandLine`ls -l ${dirname(name)}`,
  })
}
