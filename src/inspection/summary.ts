import type { CertificateReport, InspectionReport, Problem } from './report.ts'

const counters = {
  ok: 'ok',
  warning: 'warning',
  critical: 'critical',
  expired: 'expired',
  'not-yet-valid': 'notYetValid',
} as const satisfies Record<CertificateReport['status'], keyof InspectionReport['summary']>

/** Returns the counts of a report. `sources` is the number of sources with any entry. */
export function summaryOf(
  parts: Omit<InspectionReport, 'apiVersion' | 'kind' | 'generatedAt' | 'at' | 'summary'>,
): InspectionReport['summary'] {
  const { certificates, requests, keys, kubeconfigs, problems, withoutCertificate } = parts
  const sources = new Set<string>()
  for (const list of [certificates, requests, keys, kubeconfigs, problems, withoutCertificate])
    addSources(list, sources)
  const summary: InspectionReport['summary'] = {
    sources: sources.size,
    certificates: certificates.length,
    requests: requests.length,
    keys: keys.length,
    ok: 0,
    warning: 0,
    critical: 0,
    expired: 0,
    notYetValid: 0,
    problems: countProblems(problems),
  }
  let next: CertificateReport | undefined
  for (let i = 0; i < certificates.length; i++) {
    const certificate = certificates[i]!
    if (certificate.isReplaced) continue
    const { status } = certificate
    summary[counters[status]]++
    if (status !== 'expired' && (next === undefined || certificate.secondsLeft < next.secondsLeft))
      next = certificate
  }
  return next === undefined ? summary : { ...summary, nextExpiry: next.notAfter }
}

function addSources(list: readonly { readonly source: string }[], sources: Set<string>): void {
  let last: string | undefined
  for (let i = 0; i < list.length; i++) {
    const { source } = list[i]!
    // Entries of one source are adjacent.
    if (source !== last) sources.add(source)
    last = source
  }
}

function countProblems(problems: readonly Problem[]): InspectionReport['summary']['problems'] {
  const counts = { info: 0, warning: 0, critical: 0 }
  for (const { severity } of problems) counts[severity]++
  return counts
}
