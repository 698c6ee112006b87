import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { type CommandLine, commandLine, embed } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { readKubeconfig } from '../kubeconfig/kubeconfig.ts'
import { readKubeconfigDocument } from '../kubeconfig/kubeconfig-document.ts'
import { itemsOf, type Node, plainValue, textOf, valueAt } from '../kubeconfig/node.ts'
import { readFile } from '../system/files.ts'

type Fields = Readonly<Record<string, unknown>>
type Unread = Extract<ReturnType<typeof readFile>, { readonly reason: string }>

/** Kubeconfigs merged into one. The first of several entries with the same name is used, as in kubectl. */
export interface MergedKubeconfig {
  /** The files that exist, for messages. */
  readonly files: readonly string[]
  readonly clusters: ReadonlyMap<string, Fields>
  readonly users: ReadonlyMap<string, Fields>
  readonly contexts: ReadonlyMap<string, Fields>
  readonly currentContext: string | undefined
}

/** The cluster and user of a context, with absolute paths. */
export interface SelectedContext {
  readonly contextName: string
  readonly userName: string
  readonly clusterName: string
  readonly cluster: Fields
  readonly user: Fields
  readonly namespace?: string
  /** The files that it comes from, for commands. */
  readonly files: readonly string[]
  /** The same for messages. */
  readonly source: string
  /** kubectl with the flags that select the same context, for commands in messages. */
  readonly kubectl: CommandLine
}

const pathFields = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile']

/**
 * Returns the kubeconfigs merged as kubectl does. Files that do not exist are skipped unless they are required. Throws
 * KCERT_FILE_NOT_FOUND and the like, and KCERT_KUBECONFIG_UNUSABLE for input that client-go rejects.
 */
export async function readKubeconfigs(
  files: readonly string[],
  { mustExist }: { readonly mustExist: boolean },
): Promise<MergedKubeconfig> {
  const merged = emptyKubeconfig()
  for (const file of files) {
    const bytes = bytesOf(file, mustExist)
    if (bytes !== undefined) await merge(merged, file, bytes)
  }
  return merged
}

/** Returns one kubeconfig. `name` is its file, or the object that contains it. Throws KCERT_KUBECONFIG_UNUSABLE. */
export async function readKubeconfigIn(name: string, bytes: Uint8Array): Promise<MergedKubeconfig> {
  const merged = emptyKubeconfig()
  await merge(merged, name, bytes)
  return merged
}

const emptyKubeconfig = () => ({
  files: [] as string[],
  clusters: new Map<string, Fields>(),
  users: new Map<string, Fields>(),
  contexts: new Map<string, Fields>(),
  currentContext: undefined as string | undefined,
})

async function merge(
  merged: ReturnType<typeof emptyKubeconfig>,
  file: string,
  bytes: Uint8Array,
): Promise<void> {
  merged.files.push(file)
  const root = await documentIn(file, bytes)
  if (root === undefined) return
  refuseDefects(root, file)
  const folder = dirname(file)
  collect(root, 'clusters', 'cluster', folder, merged.clusters)
  collect(root, 'users', 'user', folder, merged.users)
  collect(root, 'contexts', 'context', folder, merged.contexts)
  merged.currentContext ??= textOf(valueAt(root, 'current-context')) || undefined
}

/** Names on the command line, which replace those of the kubeconfig. */
export interface AskedNames {
  readonly context?: string | undefined
  readonly cluster?: string | undefined
  readonly user?: string | undefined
  /** With a server, the kubeconfig needs neither a context nor a cluster. */
  readonly server?: string | undefined
}

/** Returns the cluster and user of a context. Throws KCERT_KUBECONFIG_UNUSABLE with the missing name. */
export function selectContext(merged: MergedKubeconfig, asked: AskedNames): SelectedContext {
  const { files } = merged
  const source = files.join(', ')
  const place = asked.cluster ?? asked.server
  const contextName = asked.context ?? merged.currentContext
  if (contextName === undefined && place !== undefined)
    return selectedBy(merged, { name: place, context: {}, kubectl: kubectlFor(files, undefined) }, asked)
  const known = [...merged.contexts.keys()]
  if (contextName === undefined) {
    throw unusable(`${source} has no current-context`, {
      why: known.length === 0 ? 'it has no contexts at all' : `its contexts: ${known.join(', ')}`,
      next:
        known.length === 0
          ? commandLine`kcert inspect ${files}`
          : commandLine`${embed(kubectlFor(files, undefined))} config get-contexts`,
    })
  }
  const context = merged.contexts.get(contextName)
  if (context === undefined) {
    throw unusable(`${source} has no context ${JSON.stringify(contextName)}`, {
      why: known.length === 0 ? 'it has no contexts at all' : `its contexts: ${known.join(', ')}`,
      next: commandLine`${embed(kubectlFor(files, undefined))} config get-contexts`,
    })
  }
  return selectedBy(merged, { name: contextName, context, kubectl: kubectlFor(files, contextName) }, asked)
}

/** Returns a kubeconfig with this context only, like `kubectl config view --minify --raw`. It contains the credentials. */
export function minified({ contextName, clusterName, userName, cluster, user }: SelectedContext): Uint8Array {
  const context = { cluster: clusterName, user: userName }
  const only = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: clusterName, cluster }],
    users: userName === '' ? [] : [{ name: userName, user }],
    contexts: [{ name: contextName, context }],
    'current-context': contextName,
  }
  return Buffer.from(JSON.stringify(only))
}

interface NamedContext {
  readonly name: string
  readonly context: Fields
  readonly kubectl: CommandLine
}

function selectedBy(
  { files, clusters, users }: MergedKubeconfig,
  { name: contextName, context, kubectl }: NamedContext,
  asked: AskedNames,
): SelectedContext {
  const source = files.join(', ') || 'the command line'
  const clusterName = asked.cluster ?? String(context.cluster ?? '')
  const userName = asked.user ?? String(context.user ?? '')
  const found = clusters.get(clusterName)
  const isUnknown = found === undefined && asked.cluster !== undefined
  const cluster = asked.server === undefined || isUnknown ? found : { ...found, server: asked.server }
  if (typeof cluster?.server !== 'string' || cluster.server === '') {
    throw unusable(`context ${JSON.stringify(contextName)} of ${source} has no API server`, {
      why: cluster
        ? `cluster ${JSON.stringify(clusterName)} has no server`
        : `no cluster is named ${JSON.stringify(clusterName)}`,
      next: commandLine`kcert inspect ${files}`,
    })
  }
  const user = userName === '' ? {} : users.get(userName)
  if (user === undefined) {
    throw unusable(`context ${JSON.stringify(contextName)} of ${source} has no user`, {
      why: `no user is named ${JSON.stringify(userName)}`,
      next: commandLine`kcert inspect ${files}`,
    })
  }
  const namespace = typeof context.namespace === 'string' ? context.namespace : undefined
  const names = { contextName, userName, clusterName, files, source, kubectl }
  return { ...names, cluster, user, ...(namespace && { namespace }) }
}

function kubectlFor(files: readonly string[], contextName: string | undefined): CommandLine {
  const [file, second] = files
  const merged = second === undefined ? commandLine`` : commandLine`KUBECONFIG=${files.join(delimiter)} `
  const flag =
    second === undefined && file !== undefined ? embed(commandLine`--kubeconfig ${file}`) : undefined
  const context = contextName === undefined ? undefined : embed(commandLine`--context ${contextName}`)
  return commandLine`${embed(merged)}kubectl ${flag} ${context}`
}

function whyUnread(read: ReturnType<typeof readFile>): string {
  if (!('reason' in read)) return 'it is empty'
  const isSentence = read.reason === 'io' || read.reason === 'permission'
  return isSentence ? read.detail : `it ${read.detail}`
}

/**
 * Returns the bytes of a file that a kubeconfig field names. Throws KCERT_KUBECONFIG_UNUSABLE for a file that is not regular,
 * exceeds kcert's size limit, or cannot be read. Never waits.
 */
export function namedFile(file: string, field: string): Uint8Array {
  const read = readFile(file)
  if ('bytes' in read && read.bytes.length > 0) return read.bytes
  throw unusable(`${field} ${file} cannot be read`, {
    why: whyUnread(read),
    next: commandLine`ls -l ${file}`,
  })
}

export function unusable(what: string, advice: { why?: string; next?: string; cause?: unknown }): KcertError {
  return new KcertError('KCERT_KUBECONFIG_UNUSABLE', what, advice)
}

function bytesOf(file: string, mustExist: boolean): Uint8Array | undefined {
  const read = readFile(file)
  if ('bytes' in read) return read.bytes
  if (read.reason === 'not-found' && !mustExist) return undefined
  throw unreadKubeconfig(read)
}

/** Returns the error for a kubeconfig that cannot be read. */
export function unreadKubeconfig({ name, reason, detail }: Unread): KcertError {
  return new KcertError(
    reason === 'not-found' ? 'KCERT_FILE_NOT_FOUND' : 'KCERT_FILE_UNREADABLE',
    `the kubeconfig ${name} cannot be read`,
    { why: detail, next: commandLine`ls -l ${name}` },
  )
}

/** Returns the first document; undefined for an empty file, which client-go reads as an empty kubeconfig. */
async function documentIn(file: string, bytes: Uint8Array): Promise<Node | undefined> {
  const { documents, defects } = await readKubeconfigDocument(bytes)
  const [defect] = defects
  if (defect !== undefined) {
    throw unusable(`the kubeconfig ${file} is not YAML`, {
      why: `${defect.line === undefined ? '' : `line ${defect.line}: `}${defect.reason}`,
      next: commandLine`kcert inspect ${file}`,
    })
  }
  return documents[0]
}

function refuseDefects(root: Node, file: string): void {
  const { defects } = readKubeconfig(root)
  const fatal = defects.find(({ isFatal }) => isFatal)
  if (fatal === undefined) return
  throw unusable(`clients reject the kubeconfig ${file}`, {
    why: `${fatal.field}: ${fatal.reason}`,
    next: commandLine`kcert inspect ${file}`,
  })
}

function collect(root: Node, part: string, inner: string, folder: string, into: Map<string, Fields>): void {
  for (const item of itemsOf(valueAt(root, part))) {
    const name = textOf(valueAt(item, 'name')) ?? ''
    const node = valueAt(item, inner)
    const value = node === undefined ? {} : plainValue(node)
    const fields = typeof value === 'object' && value !== null ? (value as Fields) : {}
    if (!into.has(name)) into.set(name, withAbsolutePaths(fields, folder))
  }
}

function withAbsolutePaths(fields: Fields, folder: string): Fields {
  const paths = pathFields.flatMap((field) => {
    const path = fields[field]
    return typeof path === 'string' && path !== '' && !isAbsolute(path) ? [[field, join(folder, path)]] : []
  })
  return { ...fields, ...Object.fromEntries(paths), ...absoluteCommand(fields, folder) }
}

/** A relative path with a slash is relative to the kubeconfig. A name without a slash is searched in PATH. */
function absoluteCommand({ exec }: Fields, folder: string): Fields {
  if (typeof exec !== 'object' || exec === null || !('command' in exec)) return {}
  const { command } = exec
  if (typeof command !== 'string' || isAbsolute(command) || !command.includes('/')) return {}
  return { exec: { ...exec, command: join(folder, command) } }
}
