import { KcertCommand } from '../../cli/base-command.ts'
import type { ChosenCluster } from '../../cli/flags.ts'
import * as Flag from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { interruptible } from '../../cli/interruption.ts'
import { isReaderGone } from '../../cli/standard-output.ts'
import { stdoutView } from '../../cli/view.ts'
import { type ExitCode, exitCodes, worstExit } from '../../errors/codes.ts'
import { repeatInAdvice } from '../../errors/command-line.ts'
import { type ErrorFields, errorFields, KcertError, wordsOf } from '../../errors/kcert-error.ts'
import { withoutUser } from '../../inspection/entry-reports.ts'
import type { FleetKind, FleetRow, FleetStatus, FleetSummary, FleetWriter } from '../../output/fleet.ts'
import { type FleetFlags, type FleetSource, fleetSources } from './flags.ts'
import type { Member, Members } from './members.ts'
import type { Found, Result } from './run.ts'

/** The exit codes of every command of `kcert fleet`; `done` and `no` are those of the command. */
export const fleetExits = {
  usage: 'wrong usage, or there is no cluster to read',
  unreachable: 'a cluster did not answer completely, or a kubeconfig cannot be used; the others were read',
  refused:
    'other users can change a kubeconfig that names a program or a file of this machine, or the provider file',
  notPermitted: 'an API server rejects your credentials (401) or a request (403)',
}

const statusOfExit: Readonly<Record<ExitCode, FleetStatus>> = {
  [exitCodes.done]: 'ok',
  [exitCodes.defect]: 'defect',
  [exitCodes.usage]: 'problems',
  [exitCodes.no]: 'problems',
  [exitCodes.unreachable]: 'unreachable',
  [exitCodes.refused]: 'refused',
  [exitCodes.notPermitted]: 'forbidden',
}

const shownSkipped = 10

/** The base class of the commands of `kcert fleet`: finds the clusters, evaluates each, and writes each result as it comes. */
export abstract class FleetCommand extends KcertCommand {
  protected async overFleet<Report>(
    flags: FleetFlags,
    operands: readonly string[],
    kind: FleetKind<Report>,
    evaluate: (chosen: ChosenCluster) => Promise<Found<Report>>,
  ): Promise<ExitCode> {
    const deadlineMs = parseDuration(flags.deadline, '--deadline')
    const { runFleet } = await import('./run.ts')
    using interruption = interruptible()
    const { members, skipped } = await this.membersOf(flags, operands, deadlineMs, interruption.signal)
    if (members.length === 0) throw noClusters(skipped.length, flags)
    // The flags select the management cluster. Advice about another cluster must not repeat them.
    repeatInAdvice({})
    const writer = await this.writerOf(flags, kind, members)
    await this.answer(writer.begin())
    const exits: ExitCode[] = []
    const byStatus: Partial<Record<FleetStatus, number>> = {}
    const notRead: FleetSummary['notRead'][number][] = []
    const tell = async (result: Result<Report>): Promise<void> => {
      const row = rowOf(result)
      const { cluster, source, status } = row
      exits.push(result.exit)
      byStatus[status] = (byStatus[status] ?? 0) + 1
      if (result.error !== undefined) notRead.push({ cluster, source, status, why: wordsOf(result.error) })
      await this.answer(writer.row(row))
    }
    const options = { deadlineMs, concurrency: flags.concurrency, interrupted: interruption.signal }
    await runFleet(members, options, evaluate, tell)
    const summary = { clusters: members.length, byStatus, notRead, skipped }
    await this.answer(writer.end(summary, this.context.clock().toISOString()))
    if (skipped.length > 0 && flags.output !== 'json') this.note([skippedNote(skipped)])
    return isReaderGone() ? exitCodes.done : worstExit(exits)
  }

  private async writerOf<Report>(
    { output }: FleetFlags,
    kind: FleetKind<Report>,
    members: readonly Member[],
  ): Promise<FleetWriter<Report>> {
    const { htmlWriter, jsonWriter, prometheusWriter, textWriter } = await import('../../output/fleet.ts')
    if (output === 'json') return jsonWriter(kind)
    if (output === 'prometheus') return prometheusWriter(kind)
    if (output === 'html') return htmlWriter(kind)
    const view = { ...(await stdoutView(this.context)), hasHeadings: this.hasHeadings }
    const names = members.map(({ cluster }) => cluster)
    return textWriter(kind, names, view)
  }

  private async membersOf(
    flags: FleetFlags,
    operands: readonly string[],
    deadlineMs: number,
    interrupted: AbortSignal,
  ): Promise<Members> {
    const { from = [] } = flags
    const sources = from.map(sourceNamed)
    refuseUnusedClusterFlags(flags)
    const { matcherOf, membersInFiles } = await import('./members.ts')
    const found: Members =
      operands.length === 0 && sources.length > 0
        ? { members: [], skipped: [] }
        : await membersInFiles(operands, flags.contexts, this.context)
    if (sources.length === 0) return found
    const { addManaged, readProviders } = await import('./management.ts')
    const providers = readProviders(flags['clusterprofile-provider-file'])
    const { openClusterOf } = await import('../../cli/cluster.ts')
    const signal = AbortSignal.any([interrupted, AbortSignal.timeout(deadlineMs)])
    const limits = { mostPageBytes: 2 * 1024 * 1024, signal }
    const matches = matcherOf(flags.contexts)
    const cluster = await openClusterOf(this.context, flags, limits)
    try {
      for (const source of new Set(sources))
        await addManaged(found, source, cluster, { namespace: flags.namespace, providers, matches })
    } catch (error) {
      throw signal.aborted ? notListed(cluster.server, deadlineMs, error) : error
    } finally {
      cluster.close()
    }
    return found
  }
}

function rowOf<Report>({ member, report, error, exit, isCut }: Result<Report>): FleetRow<Report> {
  const { cluster, source, selected, isObject } = member
  const server = selected instanceof KcertError ? undefined : selected.cluster.server
  const isPart = isCut && report !== undefined && exit === exitCodes.unreachable
  // The cluster answered, and one of its servers did not.
  const hasProblems = error === undefined && exit === exitCodes.unreachable
  return {
    cluster,
    source,
    ...(typeof server === 'string' && { server: withoutUser(server) }),
    status: isPart ? 'incomplete' : hasProblems ? 'problems' : statusOfExit[exit],
    ...(error && { error: isObject ? withoutNext(errorFields(error)) : errorFields(error) }),
    ...(report !== undefined && { report }),
  }
}

function withoutNext({ next: _, ...fields }: ErrorFields): ErrorFields {
  return fields
}

function notListed(server: string, deadlineMs: number, cause: unknown): KcertError {
  return new KcertError('KCERT_UNREACHABLE', `the management cluster ${server} was not read completely`, {
    why: `no complete answer within ${deadlineMs / 1000} s (--deadline), or the run was interrupted`,
    cause,
  })
}

function sourceNamed(text: string): FleetSource {
  const source = fleetSources.find((one) => one === text)
  if (source !== undefined) return source
  throw new KcertError('KCERT_USAGE', `invalid --from ${JSON.stringify(text)}`, {
    why: `the kinds are ${fleetSources.join(', ')}`,
    next: '--from cluster-api',
  })
}

/** These flags select the management cluster. A token on the command line is never sent to all clusters. */
function refuseUnusedClusterFlags(flags: FleetFlags): void {
  const { 'request-timeout': _, ...ofCluster } = Flag.clusterFlags
  const [flag] = Object.entries(flags).flatMap(([name, value]) => (name in ofCluster && value ? [name] : []))
  if (flag === undefined || flags.from !== undefined) return
  throw new KcertError('KCERT_USAGE', `--${flag} requires --from`, {
    why: 'it selects the management cluster',
    fix: 'name kubeconfigs as arguments, and contexts with --contexts',
  })
}

function noClusters(skipped: number, { contexts }: FleetFlags): KcertError {
  const why = [
    ...(contexts === undefined ? [] : ['no context matches --contexts']),
    ...(skipped === 0 ? [] : [`${skipped} files are not kubeconfigs`]),
  ]
  return new KcertError('KCERT_USAGE', 'there is no cluster to read', {
    why: why.join('; ') || 'no kubeconfig has a context, and no object names a cluster',
    next: 'kubectl config get-contexts',
  })
}

function skippedNote(skipped: Members['skipped']): string {
  const names = skipped.slice(0, shownSkipped).map(({ source }) => source)
  const more = skipped.length - names.length
  const rest = more > 0 ? ` and ${more.toLocaleString('en')} more, which -o json lists` : ''
  const count = `${skipped.length.toLocaleString('en')} ${skipped.length === 1 ? 'file that is not a kubeconfig' : 'files that are not kubeconfigs'}`
  return `skipped ${count}: ${names.join(', ')}${rest}`
}
