import type { InspectionReport, KeyReport } from '../../inspection/report.ts'
import { some } from './summary.ts'

/**
 * Returns the keys without a certificate in the inputs, or all keys if the inputs contain only keys. A certificate's row also
 * covers its key.
 */
export function shownKeys({ certificates, requests, keys }: InspectionReport): KeyReport[] {
  return certificates.length + requests.length === 0
    ? keys
    : keys.filter(({ matches }) => matches.length === 0)
}

/** Returns what a view of certificates alone does not show; undefined if it shows everything. */
export function leftOutText(report: InspectionReport): string | undefined {
  const keys = report.certificates.length === 0 ? report.keys : shownKeys(report)
  const named = [
    some(report.requests.length, 'request'),
    some(keys.length, 'key'),
    some(report.tokens.length, 'token'),
  ].filter(Boolean)
  return named.length === 0 ? undefined : `not shown: ${named.join(', ')} (-o text shows them)`
}
