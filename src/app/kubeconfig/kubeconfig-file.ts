import pMap from 'p-map'
import type { FlagsOf } from '../../cli/base-command.ts'
import { connectionOptions } from '../../cli/cluster.ts'
import type { Context } from '../../cli/context.ts'
import * as Flag from '../../cli/flags.ts'
import { readInput, readText } from '../../cli/input.ts'
import { type Cluster, openCluster } from '../../cluster/cluster.ts'
import { type ExitCode, exitCodes, worstExit } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { errorFields, KcertError } from '../../errors/kcert-error.ts'
import { editKubeconfig, type KubeconfigChanges } from '../../kubeconfig/edit.ts'
import type { Kubeconfig } from '../../kubeconfig/kubeconfig.ts'
import { openKubeconfig, unusableKubeconfig } from '../../kubeconfig/open.ts'
import type { ContextReport, KubeconfigEdit } from '../../kubeconfig/report.ts'
import { lineDiff } from '../../output/line-diff.ts'
import { replaceKeepingBackup } from '../../system/output-file.ts'

/**
 * Whether a kubeconfig contains certificates and keys, or their paths. The flags are kubectl's, which has the opposite default.
 */
export const embeddingFlags = {
  'embed-certs': Flag.boolean(
    'store the content of the files in the kubeconfig (default); --no-embed-certs stores their paths',
    { allowNo: true, default: true },
  ),
  'by-path': Flag.boolean('same as --no-embed-certs'),
}

/** The flags of the commands that edit a kubeconfig in place. */
export const editFlags = {
  ...embeddingFlags,
  'dry-run': Flag.boolean('show the change without writing it'),
  verify: Flag.boolean('connect to the API server of every context and show how it identifies the user'),
  'request-timeout': Flag.clusterFlags['request-timeout'],
  output: Flag.reportFormat(),
}

/** True with --no-embed-certs. */
export function storesPaths(flags: FlagsOf<typeof embeddingFlags>): boolean {
  return flags['by-path'] || !flags['embed-certs']
}

/** A kubeconfig to edit. */
export interface KubeconfigFile {
  readonly file: string
  readonly text: string
  readonly kubeconfig: Kubeconfig
}

/** Returns a kubeconfig of this machine. Throws KCERT_KUBECONFIG_UNUSABLE for a file that is not a kubeconfig. */
export async function readKubeconfigFile(file: string, context: Context): Promise<KubeconfigFile> {
  if (file === '-')
    throw new KcertError('KCERT_USAGE', 'a kubeconfig cannot be edited on standard input', {
      why: 'give the path of a file',
    })
  const bytes = await readInput(file, context)
  const text = Buffer.from(bytes).toString('utf8')
  // The edited field may be one that client-go rejects.
  const opened = await openKubeconfig(bytes)
  if (opened === undefined || opened.malformed !== undefined)
    throw unusableKubeconfig(file, opened?.malformed?.reason)
  return { file, text, kubeconfig: opened.kubeconfig }
}

/** Returns the name of the entry to change: the named one, that of the current context, or the only one. */
export function targetEntry(
  { file, kubeconfig }: KubeconfigFile,
  kind: 'cluster' | 'user',
  named: string | undefined,
): string {
  const entries = kubeconfig[`${kind}s`].map(({ name }) => name)
  const current = kubeconfig.contexts.find(({ name }) => name === kubeconfig.currentContext)
  const meant = named ?? current?.[kind] ?? (entries.length === 1 ? entries[0] : undefined)
  if (meant !== undefined && entries.includes(meant)) return meant
  const isUnsaid = meant === undefined && entries.length > 0
  throw new KcertError(
    isUnsaid ? 'KCERT_USAGE' : 'KCERT_KUBECONFIG_UNUSABLE',
    isUnsaid
      ? `--${kind} is required: the current-context of ${file} names no ${kind}`
      : `${file} has no ${meant === undefined ? `${kind}s` : `${kind} ${JSON.stringify(meant)}`}`,
    {
      ...(entries.length > 0 && { why: `it has: ${entries.join(', ')}` }),
      ...(entries[0] !== undefined && { next: commandLine`--${kind} ${entries[0]}` }),
    },
  )
}

/** Edits these fields of the file. All other bytes stay the same, and the previous content is saved in a backup. */
export async function editFile(
  source: KubeconfigFile,
  changes: KubeconfigChanges,
  { dryRun, context }: { readonly dryRun: boolean; readonly context: Context },
): Promise<KubeconfigEdit> {
  const { file, text } = source
  const after = await editKubeconfig(text, changes, file)
  const isSame = after === text
  if (!isSame && !dryRun) await refuseChanged(source, context)
  const backup = isSame || dryRun ? undefined : replaceKeepingBackup(file, after, context.clock())
  return {
    apiVersion: 'kcert/v1',
    kind: 'KubeconfigEdit',
    outcome: isSame ? 'unchanged' : dryRun ? 'would-edit' : 'edited',
    file,
    clusters: (changes.clusters ?? []).map(({ name }) => name),
    users: (changes.users ?? []).map(({ name }) => name),
    diff: lineDiff(text, after),
    ...(backup === undefined ? {} : { backup }),
    notices: [],
  }
}

/** Throws if the file changed since it was read, up to the moment of this check. */
async function refuseChanged({ file, text }: KubeconfigFile, context: Context): Promise<void> {
  const now = await readText(file, context)
  if (now === text) return
  throw new KcertError('KCERT_EDIT_REFUSED', `${file} was changed by another program meanwhile`, {
    why: 'nothing was written; run the command again',
  })
}

/** With --verify, returns how the API server of each context identifies the user. Undefined without --verify, or with --dry-run. */
export async function verifyContexts(
  file: string,
  flags: Pick<Flag.ClusterFlags, 'request-timeout'> & {
    readonly verify: boolean
    readonly 'dry-run': boolean
  },
  context: Context,
): Promise<ContextReport[] | undefined> {
  if (!flags.verify || flags['dry-run']) return undefined
  const options = connectionOptions(context, flags)
  const { readKubeconfigs } = await import('../../cluster/kubeconfig-files.ts')
  const { contexts } = await readKubeconfigs([file], { mustExist: true })
  return pMap(
    [...contexts],
    async ([name, fields]): Promise<ContextReport> => {
      const head = { name, cluster: String(fields.cluster ?? ''), user: String(fields.user ?? '') }
      let cluster: Cluster | undefined
      try {
        cluster = await openCluster({ files: [file], filesMustExist: true, context: name, ...options })
        const who = await cluster.access.whoAmI()
        return { ...head, outcome: 'works', ...(who && { username: who.username, groups: [...who.groups] }) }
      } catch (error) {
        if (!(error instanceof KcertError)) throw error
        const isAway = error.exitCode === exitCodes.unreachable
        return { ...head, outcome: isAway ? 'unreachable' : 'fails', error: errorFields(error) }
      } finally {
        cluster?.close()
      }
    },
    { concurrency: 8 },
  )
}

/** Returns the exit code for verified contexts; those for which `isMeant` is false do not count. */
export function exitOfContexts(
  contexts: readonly ContextReport[] | undefined,
  isMeant: (context: ContextReport) => boolean,
): ExitCode {
  return worstExit(
    (contexts ?? []).filter(isMeant).map(({ outcome }) => {
      if (outcome === 'works') return exitCodes.done
      return outcome === 'fails' ? exitCodes.no : exitCodes.unreachable
    }),
  )
}
