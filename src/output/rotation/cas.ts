import type { CaView, CertificateView, KeyView } from '../../rotation/report.ts'
import { fieldLines } from '../fields.ts'
import type { View } from '../view.ts'

/** Returns what is rotated, one line each: CAs, or the service account key. */
export function caLines({ cas, serviceAccountKey: key }: Rotated, view: View): string[] {
  return fieldLines(view, [
    ...cas.map(({ ca, oldCa, newCa, hasBridge, newKeyType }): [string, string] => [
      `${ca} CA`,
      `${caText(oldCa)} → ${caText(newCa)}${hasBridge ? ', with a bridge certificate' : ''}${newKeyType === undefined ? '' : `, key type ${newKeyType}`}`,
    ]),
    ...(key === undefined
      ? []
      : [['key ID', `${key.oldKeyId} → ${key.newKeyId ?? '(created in phase 1)'}`] as [string, string]]),
  ])
}

/** The part of a report that says what is rotated. */
export interface Rotated {
  readonly cas: readonly CaView[]
  readonly serviceAccountKey?: KeyView | undefined
}

function caText({ subject, notAfter }: CertificateView): string {
  return notAfter === undefined
    ? `${subject} (created in phase 1)`
    : `${subject} (expires ${notAfter.slice(0, 10)})`
}

/** Returns certificates with their part in the rotation: `old CN=kubernetes, new CN=kubernetes-ca-2`. */
export function certificatesText(certificates: readonly CertificateView[]): string {
  if (certificates.length === 0) return 'none'
  return certificates.map(({ generation, subject }) => `${generation} ${subject}`).join(', ')
}

/** Returns at most `most` names, and the number of the others. */
export function someOf(names: readonly string[], most: number): string {
  const shown = names.slice(0, most).join(', ')
  const more = names.length - most
  return more > 0 ? `${shown} and ${more.toLocaleString('en')} more` : shown
}
