import pMap from 'p-map'
import { connectionOptions } from '../../cli/cluster.ts'
import type { Context } from '../../cli/context.ts'
import type { ClusterFlags } from '../../cli/flags.ts'
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

/** A kubeconfig that is to be edited. */
export interface KubeconfigFile {
  readonly file: string
  readonly text: string
  readonly kubeconfig: Kubeconfig
}

/** Returns a kubeconfig of this machine. Throws KCERT_KUBECONFIG_UNUSABLE for a file that is none. */
export async function readKubeconfigFile(file: string, context: Context): Promise<KubeconfigFile> {
  if (file === '-')
    throw new KcertError('KCERT_USAGE', 'a kubeconfig is edited in its file, not on standard input', {
      next: 'name the file',
    })
  const bytes = await readInput(file, context)
  const text = Buffer.from(bytes).toString('utf8')
  // A field that client-go refuses may be the one that is edited.
  const opened = await openKubeconfig(bytes)
  if (opened === undefined || opened.malformed !== undefined)
    throw unusableKubeconfig(file, opened?.malformed?.reason)
  return { file, text, kubeconfig: opened.kubeconfig }
}

/** Returns the entry that is meant: the one that is named, that of the current context, or the only one. */
export function meantEntry(
  { file, kubeconfig }: KubeconfigFile,
  kind: 'cluster' | 'user',
  named: string | undefined,
): string {
  const entries = kubeconfig[`${kind}s`].map(({ name }) => name)
  const current = kubeconfig.contexts.find(({ name }) => name === kubeconfig.currentContext)
  const meant = named ?? current?.[kind] ?? (entries.length === 1 ? entries[0] : undefined)
  if (meant !== undefined && entries.includes(meant)) return meant
  throw new KcertError(
    meant === undefined ? 'KCERT_USAGE' : 'KCERT_KUBECONFIG_UNUSABLE',
    meant === undefined
      ? `it is not said which ${kind} of ${file} is meant`
      : `${file} has no ${kind} ${JSON.stringify(meant)}`,
    {
      why: entries.length === 0 ? `it has no ${kind}s` : `it has: ${entries.join(', ')}`,
      next: commandLine`--${kind} NAME`,
    },
  )
}

/** Edits these fields of the file, every other octet stays, and the file as it was is kept beside it. */
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

/** Guards against a change between reading and writing, to within the moment of this look. */
async function refuseChanged({ file, text }: KubeconfigFile, context: Context): Promise<void> {
  const now = await readText(file, context)
  if (now === text) return
  throw new KcertError('KCERT_EDIT_REFUSED', `${file} was changed by somebody else meanwhile`, {
    next: 'run the command again',
  })
}

/** With --verify asks the API server of each context who it takes the user for; undefined where that is not wished, or nothing was written. */
export async function verifyContexts(
  file: string,
  flags: Pick<ClusterFlags, 'request-timeout'> & { readonly verify: boolean; readonly 'dry-run': boolean },
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

/** Returns the exit code for contexts that were asked for, where `isMeant` says which of them were to work. */
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
