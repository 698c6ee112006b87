import type { AuditCredential, AuditPolicyCheck, AuditReport } from '../audit/report.ts'
import { adviceLines, counted, indentedLines, joinSections } from './sections.ts'
import { type StatusText, statusColumn, table } from './table.ts'
import { printable } from './terminal.ts'
import { minuteOf, secondOf } from './time.ts'
import type { View } from './view.ts'

/** More rows do not help a reader. The other formats have all. */
const mostRows = 200
const fingerprintStart = 'X509SHA256='.length + 16

const statusTexts: Readonly<Record<NonNullable<AuditCredential['status']>, StatusText>> = {
  old: ['old', 'critical'],
  unknown: ['unknown', 'warning'],
  current: ['current', 'ok'],
}

/** Returns who used which credential, and what the logs do not show. */
export function renderAudit(report: AuditReport, view: View): string {
  const { credentials, incomplete, withoutCredentialId } = report
  const { isWide = false, paint } = view
  const rows = isWide ? credentials : credentials.slice(0, mostRows)
  const more = credentials.length - rows.length
  const wide = (title: string, cell: (row: AuditCredential) => string) => (isWide ? [{ title, cell }] : [])
  const list = (texts: readonly string[] = [], isCut?: boolean): string =>
    [...texts, ...(isCut ? ['…'] : [])].join(', ')
  return joinSections([
    [verdictText(report, view)],
    table(view, rows, [
      ...(report.conclusion === undefined
        ? []
        : [
            statusColumn<AuditCredential>('STATUS', paint, ({ status }) =>
              status === undefined ? ['', 'ok'] : statusTexts[status],
            ),
          ]),
      // Enough to search for it. -o wide shows all of a fingerprint.
      {
        title: 'CREDENTIAL',
        cell: ({ id, kind }) => (isWide || kind !== 'certificate' ? id : id.slice(0, fingerprintStart)),
      },
      {
        title: 'USER',
        cell: ({ users, isCut }) => list(users, isCut && users.length > 1),
        shrinkTo: 16,
        cut: 'middle',
      },
      { title: 'ADDRESS', cell: ({ sourceIPs, isCut }) => list(sourceIPs, isCut), shrinkTo: 12 },
      ...wide('FORWARDED FOR', ({ forwardedFor }) => list(forwardedFor)),
      {
        title: 'USER AGENT',
        cell: ({ userAgents, isCut }) => list(userAgents, isCut),
        shrinkTo: 10,
        dropRank: 1,
      },
      ...wide('PODS', ({ pods }) => list(pods)),
      ...wide('NODES', ({ nodes }) => list(nodes)),
      ...wide('FIRST USED', ({ firstUsed }) => secondOf(firstUsed)),
      { title: 'LAST USED', cell: ({ lastUsed }) => (isWide ? secondOf(lastUsed) : minuteOf(lastUsed)) },
      { title: 'REQUESTS', cell: ({ requests }) => String(requests) },
      ...wide('ISSUED', ({ issued }) => (issued === undefined ? '' : secondOf(issued))),
      ...wide('STALE', ({ isStale }) => (isStale ? 'yes' : '')),
      ...wide('SUBJECT', ({ known }) => known?.subject ?? ''),
      ...wide('EXPIRES', ({ known }) => (known?.notAfter === undefined ? '' : secondOf(known.notAfter))),
      ...wide('KEY ID', ({ known }) => known?.keyId ?? ''),
      {
        title: 'FOUND IN',
        cell: ({ known }) => (isWide ? list(known?.places) : (known?.places[0] ?? '')),
        shrinkTo: 10,
        cut: 'middle',
        dropRank: 2,
      },
    ]),
    more > 0 ? [`${counted(more, 'more credential')}: -o wide and -o json list all`] : [],
    reasonLines(report),
    incomplete.length === 0
      ? []
      : [
          paint.status.warning('the logs do not show every use'),
          ...incomplete.flatMap((text) => indentedLines(text, '  ', view)),
        ],
    withoutCredentialId.length === 0
      ? []
      : [
          printable(
            `requests without a credential ID: ${withoutCredentialId
              .slice(0, isWide ? undefined : 5)
              .map(({ username, requests }) => `${username} (${requests.toLocaleString('en')})`)
              .join(', ')}`,
          ),
        ],
    report.notes.map((note) => `note: ${printable(note)}`),
  ])
}

function verdictText({ conclusion, since, summary }: AuditReport, { paint: { status } }: View): string {
  const period = since === undefined ? '' : ` since ${secondOf(since)}`
  const { events, firstEvent, lastEvent } = summary
  const read = `${counted(events, 'event')} read`
  const covered =
    since === undefined && firstEvent !== undefined && lastEvent !== undefined
      ? ` from ${secondOf(firstEvent)} to ${secondOf(lastEvent)}`
      : period
  if (conclusion === undefined) return `${counted(summary.credentials, 'credential')} used${period} (${read})`
  const unknown = summary.unknown > 0 ? `, and ${counted(summary.unknown, 'unknown credential')}` : ''
  if (conclusion === 'used')
    return `${status.critical(counted(summary.old, 'old credential'))} used${period}${unknown} (${read})`
  if (conclusion === 'not-used') return `${status.ok('no old credential')} used${covered} (${read})`
  return `${status.warning('unknown')}: no use of an old credential found${period}${unknown} (${read})`
}

/** Each reason for an unknown status, once. */
function reasonLines({ credentials }: AuditReport): string[] {
  const reasons = Map.groupBy(
    credentials.filter(({ why }) => why !== undefined),
    ({ why }) => why,
  )
  return [...reasons].map(([why, { length }]) => `${counted(length, 'unknown credential')}: ${why}`)
}

/** Returns what a policy hides. */
export function renderPolicyCheck(
  { source, isSufficient, findings }: AuditPolicyCheck,
  { paint: { status } }: View,
): string {
  const verdict = isSufficient
    ? `${status.ok('sufficient')}: ${printable(source)} hides no use of a credential`
    : `${status.critical('not sufficient')}: ${printable(source)} hides uses of credentials`
  return joinSections([
    [verdict],
    findings.flatMap(({ rule, hides, detail, fix }) => {
      const label = hides === 'issued-certificates' ? status.warning('note') : status.critical('problem')
      return [
        `${label} ${rule === undefined ? 'no rule' : `rule ${rule}`}: ${printable(detail)}`,
        ...adviceLines({ fix }),
      ]
    }),
  ])
}
