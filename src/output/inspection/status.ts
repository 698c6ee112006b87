import type { CertificateStatus } from '../../inspection/report.ts'

/** The status as shown in text. JSON has the value of the contract. */
export const shownStatus: Readonly<Record<CertificateStatus, string>> = {
  ok: 'valid',
  warning: 'warning',
  critical: 'critical',
  expired: 'expired',
  'not-yet-valid': 'not yet valid',
}
