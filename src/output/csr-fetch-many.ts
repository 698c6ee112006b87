import type { FetchedMany, FetchedOne } from '../csr/fetch-report.ts'
import { issuedColumns } from './issued-columns.ts'
import { shortName } from './names.ts'
import { adviceLines, counted, joinSections } from './sections.ts'
import { countsText, type StatusText, statusColumn, table } from './table.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'

const outcomes: Readonly<Record<FetchedOne['outcome'], StatusText>> = {
  fetched: ['fetched', 'ok'],
  present: ['up to date', 'ok'],
  'not-issued': ['not issued', 'warning'],
  mismatch: ['UNFIT', 'critical'],
  'not-found': ['not found', 'warning'],
  refused: ['REFUSED', 'critical'],
  failed: ['FAILED', 'critical'],
}

/** The problems of further requests are in the JSON only. */
const mostDetailed = 40

/** Returns a line for each request, why some have no file, and the count. */
export function renderFetchedMany({ folder, counts, requests }: FetchedMany, view: View): string {
  const failed = requests.flatMap(({ name, error }) => (error === undefined ? [] : [{ name, error }]))
  const more = failed.length - mostDetailed
  return joinSections([
    requests.length === 0
      ? ['no requests found']
      : table(view, requests, [
          { title: 'NAME', cell: ({ name }) => name, shrinkTo: 12, cut: 'middle' },
          statusColumn('OUTCOME', view.paint, ({ outcome }) => outcomes[outcome]),
          {
            title: 'SUBJECT',
            cell: ({ certificate }) => (certificate ? shortName(certificate.subject) : ''),
            shrinkTo: 16,
          },
          ...issuedColumns,
        ]),
    failed
      .slice(0, mostDetailed)
      .flatMap(({ name, error }) => [`${printable(name)}: ${printable(error.what)}`, ...adviceLines(error)]),
    more > 0 ? [`… and ${more} more (see -o json)`] : [],
    [`${counted(requests.length, 'request')} in ${printable(folder)}${countsText(counts, outcomes)}`],
  ])
}
