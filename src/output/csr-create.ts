import type { CreateReport } from '../csr/create-report.ts'
import { fieldLines } from './fields.ts'
import { altNameList, keyText } from './names.ts'
import { joinSections } from './sections.ts'
import { table } from './table.ts'
import { wholeWidth } from './view.ts'

// Text for the report of `kcert csr create`. The report contains no private key.

/** Returns the created requests and their files: fields for one request, a table for several. */
export function renderCreated({ requests }: CreateReport): string {
  const [only, second] = requests
  if (only === undefined) return ''
  return joinSections([
    second === undefined
      ? fieldLines(wholeWidth, [
          ['request', only.files.request],
          ['private key', only.files.key],
          ['kubeconfig', only.files.kubeconfig],
          ['subject', only.subject || '(empty)'],
          ['SANs', altNameList(only.subjectAltNames).join(', ')],
          ['key', keyText(only.publicKey)],
          ['signer', only.manifest?.spec.signerName],
          ['usages', only.manifest?.spec.usages.join(', ')],
        ])
      : table(wholeWidth, requests, [
          { title: 'FOR', cell: ({ row }) => row ?? '' },
          { title: 'SUBJECT', cell: ({ subject }) => subject },
          { title: 'REQUEST', cell: ({ files }) => files.request ?? '' },
          { title: 'PRIVATE KEY', cell: ({ files }) => files.key ?? files.kubeconfig ?? '' },
        ]),
  ])
}
