import type { CertificateReport, InspectionReport } from '../../inspection/report.ts'
import { printable } from '../terminal.ts'
import { minuteOf, timeLeft } from '../time.ts'
import { displayWidth, shortened, wrapped } from '../width.ts'

// Leaves room for the rest of the sentence.
const longestName = 60

/** Returns the report in one sentence: the counts, the states, and the next expiry. */
export function summaryLine(report: InspectionReport): string {
  return summaryParts(report).join('; ')
}

/** Returns the summary in one line if it fits, and else in one line for each part. */
export function summaryLines(report: InspectionReport, width: number): string[] {
  const line = summaryLine(report)
  return displayWidth(line) <= width ? [line] : summaryParts(report).flatMap((part) => wrapped(part, width))
}

function summaryParts(report: InspectionReport): string[] {
  if (isAboutFilesOnly(report)) return [problemsOfFiles(report)]
  const next = nextToExpire(report.certificates)
  return [counts(report), ...(next ? [nextText(next)] : []), problemCounts(report)]
}

/** Returns true when --only problem shows no certificate, but files are missing or cannot be read. */
function isAboutFilesOnly({ summary, selection }: InspectionReport): boolean {
  const { certificates, requests, keys, problems } = summary
  const isEmpty = certificates + requests + keys === 0
  return isEmpty && selection?.only.includes('problem') === true && problems.critical + problems.warning > 0
}

function problemsOfFiles(report: InspectionReport): string {
  const { certificates = 0 } = report.selection ?? {}
  const { sources } = report.summary
  const all = `${certificates} ${plural(certificates, 'certificate')} in ${sources} ${plural(sources, 'source')}`
  return `${problemCounts(report)}, none of them concerns the ${all}`
}

function nextText(next: CertificateReport): string {
  const name = shortened(printable(shortRole(next)), longestName)
  return `next to expire: ${name} in ${timeLeft(next.secondsLeft)} (${minuteOf(next.notAfter)} UTC)`
}

function problemCounts({ summary, selection }: InspectionReport): string {
  const { info, warning, critical } = summary.problems
  const found = [inState(critical, 'critical'), inState(warning, 'warning'), inState(info, 'info')].filter(
    Boolean,
  )
  if (found.length === 0) return 'no problems'
  // Problems of certificates that --only excludes are left out, so these concern files without certificates.
  const isElsewhere =
    selection !== undefined && !selection.only.includes('problem') && summary.certificates === 0
  return `${isElsewhere ? 'other problems' : 'problems'}: ${found.join(', ')}`
}

const selectorWords: Readonly<Record<string, string>> = {
  expired: 'has expired',
  expiring: 'expires soon',
  'not-yet-valid': 'is not yet valid',
  ok: 'is valid for longer than the thresholds',
  ca: 'is a CA certificate',
  leaf: 'is a leaf certificate',
  client: 'is a client certificate',
  server: 'is a serving certificate',
  kubelet: 'is a kubelet certificate',
  problem: 'has a problem',
}

function counts({ summary, selection }: InspectionReport): string {
  const found = [
    some(summary.certificates, 'certificate'),
    some(summary.requests, 'request'),
    some(summary.keys, 'key'),
    some(summary.tokens, 'service account token'),
  ].filter(Boolean)
  const where = `${summary.sources} ${plural(summary.sources, 'source')}`
  if (found.length === 0 && selection !== undefined && selection.certificates > 0) {
    const { only, certificates } = selection
    const asked = only.map((selector) => selectorWords[selector] ?? selector).join(' or ')
    return `none of ${certificates} ${plural(certificates, 'certificate')} in ${where} ${asked}`
  }
  const what = found.length === 0 ? 'nothing found' : found.join(', ')
  return `${what} in ${where}${states(summary)}`
}

function states(summary: InspectionReport['summary']): string {
  if (summary.certificates === 0) return ''
  const { expired, critical, warning, notYetValid, ok } = summary
  if (expired + critical + warning + notYetValid === 0)
    return `: ${summary.certificates === 1 ? '' : 'all '}valid`
  const states = [
    inState(expired, 'expired'),
    inState(critical, 'critical'),
    inState(warning, 'warning'),
    inState(notYetValid, 'not yet valid'),
    inState(ok, 'valid'),
  ]
  return `: ${states.filter(Boolean).join(', ')}`
}

/** Returns the unexpired certificate that expires first. */
export function nextToExpire(certificates: readonly CertificateReport[]): CertificateReport | undefined {
  let next: CertificateReport | undefined
  for (const certificate of certificates) {
    if (certificate.isReplaced) continue
    if (certificate.secondsLeft >= 0 && (!next || certificate.secondsLeft < next.secondsLeft))
      next = certificate
  }
  return next
}

/** Returns the name of a certificate in a sentence: its role, or else its subject. */
export function shortRole({ role, subject, source }: CertificateReport): string {
  return role ?? subject.commonName ?? source
}

export function plural(count: number, noun: string): string {
  return count === 1 ? noun : `${noun}s`
}

/** Returns `1 key` or `12 keys`; empty for 0. */
export function some(count: number, noun: string): string {
  return count === 0 ? '' : `${count} ${plural(count, noun)}`
}

function inState(count: number, state: string): string {
  return count === 0 ? '' : `${count} ${state}`
}
