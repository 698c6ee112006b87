import type { FetchReport } from '../csr/fetch-report.ts'
import { type Field, fieldLines } from './fields.ts'
import { altNameList } from './names.ts'
import { joinSections } from './sections.ts'
import { secondOf } from './time.ts'
import type { View } from './view.ts'

/** Returns the path of the certificate, its content, and the comparisons. The report contains no private key. */
export function renderFetched(report: FetchReport, view: View): string {
  const { files, subject, subjectAltNames, checks } = report
  const fields: Field[] = [
    ['certificate', files.certificate],
    ['private key', files.key],
    ['request', files.request],
    ['kubeconfig', files.kubeconfig],
    ['manifest', files.manifest],
    ['subject', subject.text || '(empty)'],
    ['SANs', altNameList(subjectAltNames).join(', ')],
    ['signer', report.signerName],
    ['serial number', report.serialNumber],
    ['not after', secondOf(report.notAfter)],
    ...checks.map(
      ({ id, ok, detail }): Field => [
        `check ${id}`,
        `${ok ? 'ok' : 'accepted'}: ${detail}`,
        ok ? view.paint.status.ok : view.paint.status.warning,
      ],
    ),
  ]
  return joinSections([fieldLines(view, fields)])
}
