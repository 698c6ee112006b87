import type {
  AuthorityFacts,
  CaPins,
  ClusterInfoReport,
  ClusterInfoUpdate,
  ClusterInfoVerification,
  SignatureFacts,
} from '../bootstrap/cluster-info-report.ts'
import { checkLines } from './check-lines.ts'
import { type Field, fieldLines } from './fields.ts'
import { joinSections } from './sections.ts'
import { tableLines } from './table.ts'
import { printable } from './terminal.ts'
import { minuteOf } from './time.ts'
import type { View } from './view.ts'

/** Returns what cluster-info says: the server, its CAs with their pins, the signatures, and what is wrong. */
export function renderClusterInfo(report: ClusterInfoReport, view: View): string {
  const { server, authorities, signatures, faults } = report
  return joinSections([
    fieldLines([['server', server ?? '(none)']], view),
    authorities.length === 0 ? ['no CA'] : authorityLines(authorities, view),
    signatureLines(signatures, view),
    checkLines(
      faults.map((fault) => ({ ...fault, outcome: 'no' as const })),
      view,
    ),
  ])
}

/** Returns what was held against what, line by line, and the verdict. */
export function renderVerification(report: ClusterInfoVerification, view: View): string {
  const { verdict, checks, server } = report
  const { status, severity } = view.paint
  const words = {
    ok: status.ok('yes'),
    no: severity.critical('NO'),
    unknown: status.warning('not all of it could be looked at'),
  }
  return joinSections([
    fieldLines([['server', server ?? '(none)']], view),
    [
      `${view.paint.heading('Does kube-public/cluster-info lead newcomers to this cluster?')} ${words[verdict]}`,
      ...checkLines(checks, view),
    ],
  ])
}

/** Returns what was or would be written, and how the signatures are now. */
export function renderUpdate(report: ClusterInfoUpdate, view: View): string {
  const { outcome, diff, after, signatures, backup } = report
  const words = {
    updated: 'written, and signed for every token',
    unchanged: 'nothing to write: these CAs are there already, in this order',
    'would-update': 'would be written (--dry-run)',
    declined: 'declined: nothing was written',
  }
  const { paint } = view
  return joinSections([
    fieldLines(
      [
        ['cluster-info', words[outcome]],
        ['before it', backup],
      ],
      view,
    ),
    diff.map((line) => {
      const text = printable(line)
      if (line.startsWith('+')) return paint.status.ok(text)
      return line.startsWith('-') ? paint.severity.critical(text) : text
    }),
    authorityLines(after, view),
    outcome === 'would-update' ? [] : signatureLines(signatures, view),
  ])
}

/** Returns the pins, one in a line. */
export function renderPins({ authorities }: CaPins, view: View): string {
  return `${authorityLines(authorities, view).join('\n')}\n`
}

function authorityLines(authorities: readonly AuthorityFacts[], { width, paint }: View): string[] {
  return tableLines(
    [
      { title: 'CA', cell: ({ subject }: AuthorityFacts) => subject || '(empty)', shrinkTo: 12 },
      { title: 'EXPIRES', cell: ({ notAfter }: AuthorityFacts) => minuteOf(notAfter) },
      { title: 'PIN', cell: ({ pin }: AuthorityFacts) => pin },
    ],
    authorities,
    // A pin that is cut is of no use to anybody.
    Math.max(width, 110),
    paint,
  )
}

function signatureLines(signatures: readonly SignatureFacts[], view: View): string[] {
  const { status, severity } = view.paint
  const words = {
    stands: 'stands',
    stale: 'STALE: of another text or token',
    missing: 'MISSING',
    orphaned: 'orphaned: no token of this id signs',
    unknown: 'not known: its Secret may not be read',
  }
  const fields = signatures.map(
    ({ tokenId, state }): Field => [
      `signature of ${tokenId}`,
      words[state],
      state === 'stands'
        ? status.ok
        : state === 'unknown' || state === 'orphaned'
          ? status.warning
          : severity.critical,
    ],
  )
  return fields.length === 0 ? ['no signatures'] : fieldLines(fields, view)
}
