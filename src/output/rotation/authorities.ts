import type { AuthorityView, CertificateView } from '../../rotation/report.ts'
import { type Field, fieldLines } from '../fields.ts'
import type { View } from '../view.ts'

/** Returns the CAs that are rotated, one line each. */
export function authorityLines(authorities: readonly AuthorityView[], view: View): string[] {
  const fields = authorities.map(
    ({ ca, oldCa, newCa, hasBridge }): Field => [
      `${ca} CA`,
      `${caText(oldCa)} → ${caText(newCa)}${hasBridge ? ', with a bridge' : ''}`,
    ],
  )
  return fieldLines(fields, view)
}

function caText({ subject, notAfter }: CertificateView): string {
  return notAfter === undefined
    ? `${subject} (made in phase 1)`
    : `${subject} (until ${notAfter.slice(0, 10)})`
}

/** Returns certificates by what they are to the rotation: `old CN=kubernetes, new CN=kubernetes-ca-2`. */
export function certificatesText(certificates: readonly CertificateView[]): string {
  if (certificates.length === 0) return 'none'
  return certificates.map(({ generation, subject }) => `${generation} ${subject}`).join(', ')
}

/** Returns names, so many of them, and how many more there are. */
export function someOf(names: readonly string[], most: number): string {
  const shown = names.slice(0, most).join(', ')
  const more = names.length - most
  return more > 0 ? `${shown} and ${more.toLocaleString('en')} more` : shown
}

/** Returns `1 pod`, `12 pods`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}
