import type { InspectionReport, KeyReport } from '../../inspection/report.ts'
import { some } from './summary.ts'

/**
 * Returns the keys that say something by themselves: one whose certificate is there says nothing new, for the certificate
 * stands for both. All, where keys are all there is.
 */
export function shownKeys({ certificates, requests, keys }: InspectionReport): KeyReport[] {
  return certificates.length + requests.length === 0
    ? keys
    : keys.filter(({ matches }) => matches.length === 0)
}

/** Returns what a view of certificates alone does not show, or undefined where that is nothing. */
export function leftOutText(report: InspectionReport): string | undefined {
  const keys = report.certificates.length === 0 ? report.keys : shownKeys(report)
  const named = [some(report.requests.length, 'request'), some(keys.length, 'key')].filter(Boolean)
  return named.length === 0
    ? undefined
    : `left out: ${named.join(', ')}, for they are no certificates; -o text shows them`
}
