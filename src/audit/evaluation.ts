import { given } from '../errors/given.ts'
import { shortList } from '../errors/short-list.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import { type ApiServers, coverageMs, serverCoverage, timeGaps, timeText } from './coverage.ts'
import { kindOf } from './event.ts'
import type { KnownCredential, KnownCredentials } from './known.ts'
import type { AuditCredential, AuditReport } from './report.ts'
import { mostCredentials, otherUsers, type Usage, type UsageTable } from './usage.ts'

// Joins the use of credentials with what is known about them.

/** What the operator asks. Without old CAs and keys, the report only lists the credentials. */
export interface AuditQuestion {
  readonly asksForCas: boolean
  readonly asksForKeys: boolean
  /** The start of the period. */
  readonly sinceMs?: number | undefined
  /** Every API server signs with the new key since then. */
  readonly newKeySinceMs?: number | undefined
  /** List the current credentials, too. */
  readonly listsAll: boolean
  readonly now: Date
  /** The logs are those of failed TLS handshakes. */
  readonly isLive?: boolean
  readonly apiServers?: ApiServers
}

/** What reading one log showed. */
export interface LogReading {
  readonly source: string
  readonly events: number
  /** Why some of it was not read; fragments. */
  readonly problems: readonly string[]
  readonly notes: readonly string[]
  /** The time of the newest event, if the last line is not complete. */
  readonly cutAfterMs?: number
}

/** Returns the report. A log that does not answer the question makes it incomplete: it never means "not used". */
export function auditReport(
  table: UsageTable,
  known: KnownCredentials,
  logs: readonly LogReading[],
  question: AuditQuestion,
): AuditReport {
  const { sinceMs, now, listsAll, isLive = false, apiServers = {} } = question
  const nowMs = now.getTime()
  const isAsked = question.asksForCas || question.asksForKeys
  const count = { old: 0, current: 0, unknown: 0 }
  const credentials: AuditCredential[] = []
  let used = 0
  for (const [id, usage] of table.credentials) {
    if (Number.isNaN(usage.lastMs)) continue
    used++
    const found = known.get(id)
    const { status, why } = statusOf(id, usage, found, question)
    if (status !== undefined) count[status]++
    if (!isAsked || listsAll || status === 'old' || status === 'unknown')
      credentials.push(credentialOf(id, usage, found, { status, why }))
  }
  const servers = serverCoverage(apiServers, logs)
  const incomplete = [
    ...logs.flatMap(({ source, problems, cutAfterMs = nowMs }) => {
      const isCut = cutAfterMs <= nowMs - coverageMs
      const all = isCut ? [...problems, 'the last line is not complete: the log was cut there'] : problems
      return all.map((problem) => `${source}: ${problem}`)
    }),
    ...(isAsked ? servers.gaps : []),
    ...(isLive ? [notInHandshakes] : timeGaps(table, { sinceMs, nowMs, concludes: isAsked }, apiServers)),
    ...gapsOf(table, question),
  ]
  const isUnknown = count.unknown > 0 || incomplete.length > 0
  return {
    apiVersion: 'kcert/v1',
    kind: 'AuditReport',
    generatedAt: rfc3339(now),
    ...(sinceMs !== undefined && { since: timeText(sinceMs) }),
    ...(isAsked && { conclusion: count.old > 0 ? 'used' : isUnknown ? 'unknown' : 'not-used' }),
    credentials: credentials.sort(byStatusAndTime),
    incomplete,
    notes: [...notesOf(table, logs, nowMs), ...(isAsked ? [] : servers.gaps), ...servers.notes],
    withoutCredentialId: [...table.withoutId]
      .map(([username, requests]) => ({ username, requests }))
      .sort((one, other) => other.requests - one.requests),
    logs: logs.map(({ source, events }) => ({ source, events })),
    summary: {
      events: table.events,
      ...(table.events > 0 && { firstEvent: timeText(table.firstMs), lastEvent: timeText(table.lastMs) }),
      credentials: used,
      ...count,
    },
  }
}

const notInHandshakes =
  'failed TLS handshakes show only clients that reject the certificate of an API server, or whose certificate it rejects. They show no client that connects with an old certificate, no token and no user. Log files that were compressed or deleted are not read'

type Decision = Pick<AuditCredential, 'status' | 'why'>

function statusOf(
  id: string,
  { issuedMs, lists: { users } }: Usage,
  known: KnownCredential | undefined,
  { asksForCas, asksForKeys, newKeySinceMs }: AuditQuestion,
): Decision {
  const kind = kindOf(id)
  const isAsked =
    kind === 'certificate' || kind === 'handshake'
      ? asksForCas
      : kind === 'other'
        ? asksForCas || asksForKeys
        : asksForKeys
  if (!isAsked) return {}
  if (known?.isOld !== undefined) return { status: known.isOld ? 'old' : 'current' }
  // A JWT of another issuer has an ID of the same form. Only service account tokens authenticate service accounts.
  if (kind === 'token' && users.length > 0 && !users.some(isServiceAccount)) return {}
  if (kind === 'handshake')
    return {
      status: 'unknown',
      why: 'the client may trust only the old CA, or present a certificate that the API server does not trust: find it at its address',
    }
  if (kind === 'other') return { status: 'unknown', why: 'an unknown kind of credential' }
  if (kind === 'certificate')
    return {
      status: 'unknown',
      why:
        known === undefined
          ? 'kcert has not found this certificate: name the files that may contain it with --known'
          : 'its issuer is not recorded, or its signature cannot be verified: name its file with --known',
    }
  if (issuedMs !== undefined && newKeySinceMs !== undefined)
    return { status: issuedMs >= newKeySinceMs ? 'current' : 'old' }
  if (kind === 'legacy-token')
    return {
      status: 'unknown',
      why: 'kcert has not found the token: name its Secret with --known, or use --cluster',
    }
  return {
    status: 'unknown',
    why:
      issuedMs === undefined
        ? 'the logs do not show when the token was created'
        : 'created at a known time; --new-key-since says which key signed then',
  }
}

function credentialOf(
  id: string,
  { firstMs, lastMs, requests, issuedMs, isStale, isCut, lists }: Usage,
  known: KnownCredential | undefined,
  { status, why }: Decision,
): AuditCredential {
  const { users, sourceIPs, forwardedFor, userAgents, pods, nodes } = lists
  // The lists of the table, not copies: there may be 500,000.
  const filled = (list: readonly string[]) => (list.length === 0 ? undefined : list)
  const timeOf = (ms: number | undefined) => (ms === undefined ? undefined : timeText(ms))
  return given({
    ...{
      id,
      kind: kindOf(id),
      status,
      why,
      users,
      sourceIPs,
      forwardedFor: filled(forwardedFor),
      userAgents,
    },
    ...{ pods: filled(pods), nodes: filled(nodes), isCut: isCut || undefined },
    ...{ firstUsed: timeText(firstMs), lastUsed: timeText(lastMs), requests },
    ...{ isStale: isStale || undefined, issued: timeOf(issuedMs) },
    known:
      known &&
      given({
        ...{ subject: known.subject, issuer: known.issuer, keyId: known.keyId },
        ...{ notAfter: timeOf(known.expiresAtMs), places: known.places },
      }),
  }) as AuditCredential
}

const order = ['old', 'unknown', 'current', undefined]

function byStatusAndTime(one: AuditCredential, other: AuditCredential): number {
  const byStatus = order.indexOf(one.status) - order.indexOf(other.status)
  // The times are in RFC 3339 and UTC, so their order is that of the texts.
  return byStatus || (one.lastUsed < other.lastUsed ? 1 : one.lastUsed > other.lastUsed ? -1 : 0)
}

function gapsOf(table: UsageTable, question: AuditQuestion): string[] {
  const { asksForCas, asksForKeys } = question
  const gaps: string[] = []
  if (table.leftOut > 0)
    gaps.push(
      `${mostCredentials.toLocaleString('en')} different credentials are in the report, the most that kcert keeps: ${table.leftOut.toLocaleString('en')} events with others are left out; use a later --since, or fewer logs`,
    )
  const users = [...table.withoutId.keys()]
  const accounts = users.filter((user) => isServiceAccount(user) || user === otherUsers)
  if (asksForKeys && accounts.length > 0)
    gaps.push(
      `requests of service accounts have no credential ID: ${shortList(accounts)}; Kubernetes adds it since 1.30`,
    )
  const others = users.filter((user) => !isServiceAccount(user) && !isWithoutCertificate(user))
  if (!asksForCas || others.length === 0) return gaps
  if (!table.hasCertificateIds)
    gaps.push(
      `no request with a certificate has a credential ID, but these users made requests: ${shortList(others)}; Kubernetes adds it since 1.32`,
    )
  else {
    // Another API server may be older. Users without certificates, such as those of OpenID Connect, have no credential ID either.
    const withCertificate = usersOfCertificates(table)
    const suspect = others.filter(
      (user) => user.startsWith('system:') || user === otherUsers || withCertificate.has(user),
    )
    if (suspect.length > 0)
      gaps.push(
        `some requests of users of certificates have no credential ID: ${shortList(suspect)}; Kubernetes adds it since 1.32, and one API server may be older`,
      )
  }
  return gaps
}

function isServiceAccount(user: string): boolean {
  return user.startsWith('system:serviceaccount:')
}

function usersOfCertificates({ credentials }: UsageTable): Set<string> {
  const users = new Set<string>()
  for (const [id, { lists }] of credentials)
    if (kindOf(id) === 'certificate') for (const user of lists.users) users.add(user)
  return users
}

/** Users of the API server itself, of clients without credentials, and of bootstrap tokens. */
function isWithoutCertificate(user: string): boolean {
  return user === 'system:apiserver' || user === 'system:anonymous' || user.startsWith('system:bootstrap:')
}

function notesOf(table: UsageTable, logs: readonly LogReading[], nowMs: number): string[] {
  const notes = logs.flatMap((log) => log.notes.map((note) => `${log.source}: ${note}`))
  for (const { source, cutAfterMs = Number.NEGATIVE_INFINITY } of logs)
    if (cutAfterMs > nowMs - coverageMs)
      notes.push(`${source}: the last line is not complete: it was being written`)
  if (table.future > 0)
    notes.push(
      `events with a time in the future: ${table.future}; check the clocks of the API servers and of this machine`,
    )
  return notes
}
