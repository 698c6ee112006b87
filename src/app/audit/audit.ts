import { auditReport } from '../../audit/evaluation.ts'
import type { AuditEvent } from '../../audit/event.ts'
import { KnownCredentials } from '../../audit/known.ts'
import type { AuditReport } from '../../audit/report.ts'
import { TokenSignatures } from '../../audit/token-signatures.ts'
import { UsageTable } from '../../audit/usage.ts'
import type { Context } from '../../cli/context.ts'
import type { ClusterFlags } from '../../cli/flags.ts'
import { orUndefined } from '../../errors/caught.ts'
import { type ExitCode, exitCodes, worstExit } from '../../errors/codes.ts'
import { readCertificates } from '../../x509/certificate.ts'
import { readKnownCredentials, readOldSigners } from './known-credentials.ts'
import { readAuditLogs } from './logs.ts'
import { readNodeLogs } from './node-logs.ts'

export interface AuditJob {
  readonly logs: readonly string[]
  readonly cas: readonly string[]
  readonly keys: readonly string[]
  readonly known: readonly string[]
  readonly cluster?: ClusterFlags | undefined
  /** Then the logs are on these nodes of the inventory; no nodes means all control planes. */
  readonly inventory?: string | undefined
  readonly nodes: readonly string[]
  readonly since?: Date | undefined
  readonly newKeySince?: Date | undefined
  readonly listsAll: boolean
  /** Reads failed TLS handshakes in the logs of API servers, not audit logs. */
  readonly isLive: boolean
}

/** Returns the use of credentials in audit logs, and the exit code. */
export async function audit(
  job: AuditJob,
  context: Context,
): Promise<{ report: AuditReport; exit: ExitCode }> {
  const now = context.clock()
  const { logs: targets, cas, keys, since, newKeySince, listsAll, isLive, inventory, nodes } = job
  const signatures = new TokenSignatures()
  const known = new KnownCredentials(await readOldSigners(cas, keys, signatures, context))
  // Before the logs: a mistyped name is reported at once.
  const sources = { targets: job.known, cluster: job.cluster }
  const reading = await readKnownCredentials(known, sources, signatures, context)
  const table = new UsageTable({
    sinceMs: since?.getTime() ?? Number.NEGATIVE_INFINITY,
    nowMs: now.getTime(),
  })
  const visit = (event: AuditEvent, server?: string): void => {
    table.add(event, server)
    const { certificate } = event
    if (certificate === undefined) return
    const [leaf] = orUndefined(() => readCertificates(certificate.pem)) ?? []
    if (leaf !== undefined) known.addCertificate(leaf, `${certificate.of} in the audit log`)
  }
  const { logs, unreachable, apiServers } =
    inventory === undefined
      ? { logs: await readAuditLogs(targets, context, visit), unreachable: 0, apiServers: {} }
      : await readNodeLogs(
          { inventory, nodes, targets, handshakesSinceMs: isLive ? (since?.getTime() ?? 0) : undefined },
          context,
          visit,
        )
  const report = auditReport(table, known, logs, {
    // Failed handshakes are about CAs, also without the old one.
    ...{ asksForCas: cas.length > 0 || isLive, asksForKeys: keys.length > 0, listsAll, isLive, now },
    ...{ sinceMs: since?.getTime(), newKeySinceMs: newKeySince?.getTime() },
    apiServers: { ...apiServers, inCluster: reading.apiServers },
  })
  return {
    report: { ...report, notes: [...report.notes, ...reading.notes] },
    exit: worstExit([
      unreachable > 0 ? exitCodes.unreachable : exitCodes.done,
      reading.isPermitted ? exitCodes.done : exitCodes.notPermitted,
      answersNo(report) ? exitCodes.no : exitCodes.done,
    ]),
  }
}

/** A report without a question answers yes if it is complete. */
function answersNo({ conclusion, incomplete }: AuditReport): boolean {
  return conclusion === undefined ? incomplete.length > 0 : conclusion !== 'not-used'
}
