import type { CertificateStatus } from '../../inspection/report.ts'

/** What a status is called where people read it. In JSON it is as it is in the contract. */
export const shownStatus: Readonly<Record<CertificateStatus, string>> = {
  ok: 'valid',
  warning: 'warning',
  critical: 'critical',
  expired: 'expired',
  'not-yet-valid': 'not yet valid',
}
