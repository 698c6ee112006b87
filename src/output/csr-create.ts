import type { CreatedRequest, CreateReport } from '../csr/create-report.ts'
import { altNameList, keyText } from './names.ts'
import { noPaint } from './paint.ts'
import { type Column, tableLines } from './table.ts'
import { printable } from './terminal.ts'

// What `kcert csr create` did, for people. Never a private key: the report has none.

/** Returns what was made and where it is: fields of one request, or a table of several. */
export function renderCreated({ requests }: CreateReport): string {
  const [only, second] = requests
  if (only === undefined) return ''
  return second === undefined ? renderOne(only) : renderTable(requests)
}

function renderOne({ subject, subjectAltNames, publicKey, manifest, files }: CreatedRequest): string {
  const fields: (readonly [label: string, value: string | undefined])[] = [
    ['request', files.request],
    ['private key', files.key],
    ['kubeconfig', files.kubeconfig],
    ['subject', subject || '(empty)'],
    ['names', altNameList(subjectAltNames).join(', ')],
    ['key', keyText(publicKey)],
    ['signer', manifest?.spec.signerName],
    ['usages', manifest?.spec.usages.join(', ')],
  ]
  const shown = fields.filter(([, value]) => value !== undefined && value !== '')
  const widest = Math.max(...shown.map(([label]) => label.length))
  return shown.map(([label, value]) => `${label.padEnd(widest)}  ${printable(value!)}\n`).join('')
}

function renderTable(requests: readonly CreatedRequest[]): string {
  const columns: Column<CreatedRequest>[] = [
    { title: 'FOR', cell: ({ row }) => row ?? '' },
    { title: 'SUBJECT', cell: ({ subject }) => subject },
    { title: 'REQUEST', cell: ({ files }) => files.request ?? '' },
    { title: 'PRIVATE KEY', cell: ({ files }) => files.key ?? files.kubeconfig ?? '' },
  ]
  return `${tableLines(columns, requests, Number.POSITIVE_INFINITY, noPaint).join('\n')}\n`
}
