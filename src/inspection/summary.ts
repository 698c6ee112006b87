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
  const { certificates, requests, keys, tokens, kubeconfigs, problems, withoutCertificate } = parts
  const sources = new Set<string>()
  for (const list of [certificates, requests, keys, tokens, kubeconfigs, problems, withoutCertificate])
    addSources(list, sources)
  const summary: InspectionReport['summary'] = {
    sources: sources.size,
    certificates: certificates.length,
    requests: requests.length,
    keys: keys.length,
    tokens: tokens.length,
    ok: 0,
    warning: 0,
    critical: 0,
    expired: 0,
    notYetValid: 0,
    problems: countProblems(problems),
  }
  const next = certificates.reduce<CertificateReport | undefined>((first, certificate) => {
    const { status, secondsLeft, isReplaced } = certificate
    if (isReplaced) return first
    summary[counters[status]]++
    return status !== 'expired' && secondsLeft < (first?.secondsLeft ?? Infinity) ? certificate : first
  }, undefined)
  return next === undefined ? summary : { ...summary, nextExpiry: next.notAfter }
}

function addSources(list: readonly { readonly source: string }[], sources: Set<string>): void {
  let last: string | undefined
  list.forEach(({ source }) => {
    // Entries of one source are adjacent.
    if (source !== last) sources.add(source)
    last = source
  })
}

function countProblems(problems: readonly Problem[]): InspectionReport['summary']['problems'] {
  const counts = { info: 0, warning: 0, critical: 0 }
  for (const { severity } of problems) counts[severity]++
  return counts
}
