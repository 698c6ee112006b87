import type { ManagedCertificate } from '../kubelet/manage-report.ts'
import { type Field, fieldLines } from './fields.ts'
import { altNameList } from './names.ts'
import { joinSections } from './sections.ts'
import { minuteOf } from './time.ts'
import type { View } from './view.ts'

/** Returns the current certificate, the next request, and its time. */
export function renderManaged(report: ManagedCertificate, view: View): string {
  const { template, certificate, renewal, usages } = report
  const groups = template?.organization.map((name) => `O=${name}`).join(', ') ?? ''
  const subject = [template?.commonName ? `CN=${template.commonName}` : '', groups].filter(Boolean).join(', ')
  const window =
    renewal.earliest && renewal.latest
      ? `${minuteOf(renewal.earliest)} to ${minuteOf(renewal.latest)} UTC`
      : undefined
  const fields: Field[] = [
    ['pair', report.pair],
    ['certificate', certificate?.path],
    ['subject', certificate?.subject.text],
    ['SANs', certificate && altNameList(certificate.subjectAltNames).join(', ')],
    ['not after', certificate && `${minuteOf(certificate.notAfter)} UTC`],
    ['renewed', renewal.due === undefined ? window : `now: ${renewal.due}`],
    [
      'requests',
      template === undefined ? 'nothing yet: the Node has no IP address' : subject || '(no subject)',
    ],
    ['requested SANs', template && altNameList(template).join(', ')],
    ['signer', report.signerName],
    ['usages', usages.join(', ')],
    ['lifetime', report.expirationSeconds === undefined ? undefined : `${report.expirationSeconds} s`],
    ['renewals', report.dryRun ? undefined : `${report.renewals}, and ${report.failures} failed attempts`],
  ]
  return joinSections([fieldLines(view, fields)])
}
