import type { FetchedMany, FetchedOne } from '../csr/fetch-report.ts'
import { issuedColumns } from './issued-columns.ts'
import { shortName } from './names.ts'
import { joinSections } from './sections.ts'
import { tableLines } from './table.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'

const outcomeText: Readonly<Record<FetchedOne['outcome'], string>> = {
  fetched: 'fetched',
  present: 'there already',
  'not-issued': 'not issued',
  unfit: 'UNFIT',
  'not-found': 'not found',
  refused: 'REFUSED',
  failed: 'FAILED',
}

/** What is against more than these is in the JSON. */
const mostDetailed = 40

/** Returns a line for each request, why some have no file, and the count. */
export function renderFetchedMany({ folder, counts, requests }: FetchedMany, view: View): string {
  const { paint, width } = view
  const count = `${requests.length.toLocaleString('en')} request${requests.length === 1 ? '' : 's'}`
  const each = Object.entries(counts).map(
    ([outcome, many]) => `${many.toLocaleString('en')} ${outcomeText[outcome as FetchedOne['outcome']]}`,
  )
  const failed = requests.flatMap(({ name, error }) => (error === undefined ? [] : [{ name, error }]))
  return joinSections([
    requests.length === 0
      ? ['no request is there']
      : tableLines<FetchedOne>(
          [
            { title: 'NAME', cell: ({ name }) => name, shrinkTo: 12, cut: 'middle' },
            {
              title: 'OUTCOME',
              cell: ({ outcome }) => outcomeText[outcome],
              paint: ({ outcome }, cell) => strokeOf(outcome, view)(cell),
            },
            {
              title: 'SUBJECT',
              cell: ({ certificate }) => (certificate ? shortName(certificate.subject) : ''),
              shrinkTo: 16,
            },
            ...issuedColumns,
          ],
          requests,
          width,
          paint,
        ),
    failed
      .slice(0, mostDetailed)
      .flatMap(({ name, error: { what, why, next } }) => [
        `${printable(name)}: ${printable(what)}`,
        ...(why === undefined ? [] : [`  why: ${printable(why)}`]),
        ...(next === undefined ? [] : [`  next: ${printable(next)}`]),
      ]),
    failed.length > mostDetailed ? [`… and ${failed.length - mostDetailed} more: -o json`] : [],
    [`${count} in ${printable(folder)}${each.length === 0 ? '' : `: ${each.join(', ')}`}`],
  ])
}

function strokeOf(outcome: FetchedOne['outcome'], { paint }: View): (text: string) => string {
  if (outcome === 'fetched' || outcome === 'present') return paint.status.ok
  return outcome === 'not-issued' || outcome === 'not-found' ? paint.status.warning : paint.severity.critical
}
