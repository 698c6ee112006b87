import type { CertificateReport } from '../../inspection/report.ts'
import { timeLeft } from '../time.ts'

/** Returns the time until the certificate expires, `3d ago` when it has, and `starts in 40d` while it is not valid yet. */
export function timeLeftOf(certificate: CertificateReport, at: string): string {
  if (certificate.status !== 'not-yet-valid') return timeLeft(certificate.secondsLeft)
  return `starts in ${timeLeft((Date.parse(certificate.notBefore) - Date.parse(at)) / 1000)}`
}
