import type { Certificate } from '../x509/certificate.ts'
import type { CertificateStatus } from './report.ts'
import type { Role } from './roles.ts'
import { type Thresholds, thresholdMs } from './thresholds.ts'

/** Of the lifetime: a kubelet that has not renewed by then is late. */
const kubeletIsLatePercent = 10

/** Returns how a certificate stands at a time. The last second of notAfter still counts, as it does for Go. */
export function statusAt(
  certificate: Certificate,
  role: Role,
  now: Date,
  thresholds: Thresholds,
): CertificateStatus {
  const notAfter = certificate.notAfter.getTime()
  const notBefore = certificate.notBefore.getTime()
  if (now.getTime() > notAfter) return 'expired'
  if (now.getTime() < notBefore) return 'not-yet-valid'
  const lifetimeMs = notAfter - notBefore
  const leftMs = notAfter - now.getTime()
  if (leftMs <= thresholdMs(thresholds.crit, lifetimeMs)) return 'critical'
  return leftMs <= warnMs(role, lifetimeMs, thresholds) ? 'warning' : 'ok'
}

function warnMs(role: Role, lifetimeMs: number, { warn, areDefault }: Thresholds): number {
  const limit = thresholdMs(warn, lifetimeMs)
  // Between 70 and 90 % of its life a kubelet's certificate is about to be renewed, not about to expire.
  return areDefault && role.kubelet !== undefined
    ? Math.min(limit, (lifetimeMs * kubeletIsLatePercent) / 100)
    : limit
}
