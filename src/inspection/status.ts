import type { Certificate } from '../x509/certificate.ts'
import type { Role } from './entries.ts'
import type { CertificateStatus } from './report.ts'
import { type Thresholds, thresholdMs } from './thresholds.ts'

/** Percentage of the lifetime left at which a kubelet's renewal is overdue. */
const kubeletIsLatePercent = 10

/** Returns the status of a certificate at a time. The last second of notAfter is valid, as in Go. */
export function statusAt(
  certificate: Certificate,
  role: Role,
  now: Date,
  thresholds: Thresholds,
): CertificateStatus {
  const { notBeforeMs, notAfterMs } = certificate
  const nowMs = now.getTime()
  if (nowMs > notAfterMs) return 'expired'
  if (nowMs < notBeforeMs) return 'not-yet-valid'
  const lifetimeMs = notAfterMs - notBeforeMs
  const leftMs = notAfterMs - nowMs
  if (leftMs <= thresholdMs(thresholds.crit, lifetimeMs)) return 'critical'
  return leftMs <= warnMs(role, lifetimeMs, thresholds) ? 'warning' : 'ok'
}

function warnMs(role: Role, lifetimeMs: number, { warn, areDefault }: Thresholds): number {
  const limit = thresholdMs(warn, lifetimeMs)
  // Between 70 and 90 % of its lifetime a kubelet's certificate is about to be renewed, not about to expire.
  return areDefault && role.kubelet !== undefined
    ? Math.min(limit, (lifetimeMs * kubeletIsLatePercent) / 100)
    : limit
}
