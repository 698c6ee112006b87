import type { CreatedRequest, CreateReport } from '../csr/create-report.ts'
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
  return joinSections([second === undefined ? renderOne(only) : renderTable(requests)])
}

function renderOne({ subject, subjectAltNames, publicKey, manifest, files }: CreatedRequest): string[] {
  return fieldLines(wholeWidth, [
    ['request', files.request],
    ['private key', files.key],
    ['kubeconfig', files.kubeconfig],
    ['subject', subject || '(empty)'],
    ['SANs', altNameList(subjectAltNames).join(', ')],
    ['key', keyText(publicKey)],
    ['signer', manifest?.spec.signerName],
    ['usages', manifest?.spec.usages.join(', ')],
  ])
}

function renderTable(requests: readonly CreatedRequest[]): string[] {
  return table(wholeWidth, requests, [
    { title: 'FOR', cell: ({ row }) => row ?? '' },
    { title: 'SUBJECT', cell: ({ subject }) => subject },
    { title: 'REQUEST', cell: ({ files }) => files.request ?? '' },
    { title: 'PRIVATE KEY', cell: ({ files }) => files.key ?? files.kubeconfig ?? '' },
  ])
}
