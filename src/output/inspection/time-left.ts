import type { CertificateReport } from '../../inspection/report.ts'
import { timeLeft } from '../time.ts'

/** Returns the time until the certificate expires, `3d ago` when it has, and `starts in 40d` while it is not valid yet. */
export function timeLeftOf(
  { status, notBefore, secondsLeft }: CertificateReport,
  generatedAt: string,
): string {
  if (status !== 'not-yet-valid') return timeLeft(secondsLeft)
  return `starts in ${timeLeft((Date.parse(notBefore) - Date.parse(generatedAt)) / 1000)}`
}
