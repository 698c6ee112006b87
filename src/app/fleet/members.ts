import { existsSync, globSync } from 'node:fs'
import { resolve } from 'node:path'
import { kubeconfigsOf } from '../../cli/cluster.ts'
import type { Context } from '../../cli/context.ts'
import {
  type MergedKubeconfig,
  readKubeconfigIn,
  readKubeconfigs,
  type SelectedContext,
  selectContext,
  unreadKubeconfig,
} from '../../cluster/kubeconfig-files.ts'
import { onKcertError } from '../../errors/caught.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { Source, UnreadableSource } from '../../inspection/source.ts'
import { type Node, textOf, valueAt } from '../../kubeconfig/node.ts'
import { openKubeconfig } from '../../kubeconfig/open.ts'
import { readFile } from '../../system/files.ts'
import { isFolder, readFolder } from '../../system/folders.ts'
import { requiredTrustedFile } from '../../system/trusted-file.ts'

/** A cluster to read. Two clusters may have the same name, but not also the same source. */
export interface Member {
  /** The context, or the name of the cluster in the management cluster. */
  readonly cluster: string
  /** The kubeconfig, or the object that contains it. */
  readonly source: string
  readonly selected: SelectedContext | KcertError
  /** True if the source is an object, which no command of the advice can read. */
  readonly isObject?: true
}

/** A file that is not a kubeconfig. */
export interface Skipped {
  readonly source: string
  readonly reason: string
}

export interface Members {
  readonly members: Member[]
  readonly skipped: Skipped[]
}

/** The fields of a user that name a program or a file of this machine. */
const privateFields = ['exec', 'auth-provider', 'tokenFile', 'client-certificate', 'client-key']

/** The most clusters of one run. */
export const mostMembers = 20_000

/** Reasons for which an entry of a folder is certainly not a kubeconfig. */
const foreign: ReadonlySet<UnreadableSource['reason']> = new Set(['too-large', 'not-a-file', 'seen-before'])

/**
 * Returns the clusters in kubeconfigs, folders and glob patterns, and the files that are not kubeconfigs. A kubeconfig that cannot be
 * read or used is a member with an error. Throws KCERT_FILE_NOT_FOUND for an operand that does not exist.
 */
export async function membersInFiles(
  operands: readonly string[],
  patterns: readonly string[] | undefined,
  context: Context,
): Promise<Members> {
  const found: Members = { members: [], skipped: [] }
  const matches = matcherOf(patterns)
  if (operands.length === 0) {
    // The files of $KUBECONFIG are one configuration, as in kubectl.
    const { files } = kubeconfigsOf(context, undefined)
    const merged = await readKubeconfigs(files, { mustExist: false })
    await addContexts(found, { merged, source: files.join(':') }, matches)
    return found
  }
  const seen = new Set<string>()
  for (const operand of operands.flatMap(expanded)) {
    const skip = (source: string): void => {
      found.skipped.push({ source, reason: 'not text' })
    }
    for (const input of isFolder(operand) ? readFolder(operand, skip) : [readFile(operand)]) {
      const path = resolve(input.name)
      if (seen.has(path)) continue
      seen.add(path)
      await addFile(found, input, matches)
    }
  }
  return found
}

/** A file with the name of a pattern takes precedence. */
function expanded(operand: string): string[] {
  if (existsSync(operand)) return [operand]
  const paths = /[*?[{]/.test(operand) ? globSync(operand).sort() : []
  if (paths.length > 0) return paths
  throw new KcertError('KCERT_FILE_NOT_FOUND', `${operand} does not exist`, {
    why: 'no file or folder has that name, or matches it as a pattern',
    next: commandLine`ls -ld ${operand}`,
  })
}

async function addFile(
  found: Members,
  input: Source | UnreadableSource,
  matches: (name: string) => boolean,
): Promise<void> {
  const source = input.name
  const skip = (reason: string): void => {
    found.skipped.push({ source, reason })
  }
  if ('reason' in input) {
    if (foreign.has(input.reason)) return skip(input.detail)
    return add(found, { cluster: source, source, selected: unreadKubeconfig(input) })
  }
  // Only a kubeconfig with contexts names a cluster, and most other files are recognized without parsing them.
  const hasContexts = Buffer.from(input.bytes).includes('contexts')
  const opened = hasContexts ? await openKubeconfig(input.bytes) : undefined
  if (opened === undefined || !isMeant(opened.root)) return skip('not a kubeconfig with contexts')
  const merged = await readKubeconfigIn(source, input.bytes).catch(onKcertError((error) => error))
  if (merged instanceof KcertError) return add(found, { cluster: source, source, selected: merged })
  if (merged.contexts.size === 0) return skip('a kubeconfig without contexts')
  await addContexts(found, { merged, source }, matches)
}

/** client-go accepts a kubeconfig without kind. Other files may have one of its fields by chance. */
function isMeant(root: Node): boolean {
  return textOf(valueAt(root, 'kind')) === 'Config' || valueAt(root, 'clusters') !== undefined
}

async function addContexts(
  found: Members,
  { merged, source }: { readonly merged: MergedKubeconfig; readonly source: string },
  matches: (name: string) => boolean,
): Promise<void> {
  for (const name of merged.contexts.keys()) {
    if (!matches(name)) continue
    const selected = await contextIn(merged, name).catch(onKcertError((error) => error))
    add(found, { cluster: name, source, selected })
  }
}

/**
 * Returns a context. Of a kubeconfig that names programs or files of this machine, no other user may be able to change it: its API
 * server would receive what they return.
 */
async function contextIn(merged: MergedKubeconfig, context: string): Promise<SelectedContext> {
  const selected = selectContext(merged, { context })
  if (!privateFields.some((field) => selected.user[field])) return selected
  const { files } = merged
  const [only, second] = files
  if (only === undefined || second !== undefined) {
    for (const file of files) requiredTrustedFile('kubeconfig', file)
    return selected
  }
  // The content of the trusted file, which may have been replaced since it was read.
  return selectContext(await readKubeconfigIn(only, requiredTrustedFile('kubeconfig', only)), { context })
}

/** Adds a member. Throws KCERT_USAGE for more clusters than one run may have. */
export function add({ members }: Members, member: Member): void {
  if (members.length >= mostMembers)
    throw new KcertError('KCERT_USAGE', `more than ${mostMembers} clusters`, {
      why: 'one run reads at most as many: select some with --contexts, or name fewer kubeconfigs',
    })
  members.push(member)
}

/** Returns whether a name matches one of the patterns; every name without patterns. */
export function matcherOf(patterns: readonly string[] | undefined): (name: string) => boolean {
  if (patterns === undefined) return () => true
  const expressions = patterns.map((pattern) => {
    const parts = pattern.replace(/\*+/g, '*').split(/([*?])/)
    const texts = parts.map((part) =>
      part === '*' ? '.*' : part === '?' ? '.' : part.replace(/[\\^$.|+()[\]{}]/g, '\\$&'),
    )
    return new RegExp(`^${texts.join('')}$`, 's')
  })
  return (name) => expressions.some((expression) => expression.test(name))
}

/** Returns the context, or the error of one whose kubeconfig is in an object and names a program or a file of this machine. */
export function refuseLocalNames(selected: SelectedContext): SelectedContext | KcertError {
  const { cluster, user } = selected
  const field = cluster['certificate-authority']
    ? 'certificate-authority'
    : privateFields.find((one) => user[one])
  if (field === undefined) return selected
  return new KcertError('KCERT_KUBECONFIG_REFUSED', `${selected.source} uses ${field}`, {
    why: 'it names a program or a file of this machine, and only a kubeconfig on this machine may do that',
    fix: 'pass a kubeconfig file of this cluster',
  })
}
