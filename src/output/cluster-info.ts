import type {
  CaFacts,
  CaPins,
  ClusterInfoReport,
  ClusterInfoUpdate,
  ClusterInfoVerification,
  SignatureFacts,
} from '../bootstrap/cluster-info-report.ts'
import { markedLines, questionLines } from './check-lines.ts'
import { type Field, fieldLines } from './fields.ts'
import { diffLines, joinSections } from './sections.ts'
import { type StatusText, table } from './table.ts'
import { minuteOf } from './time.ts'
import type { View } from './view.ts'

/** Returns the content of cluster-info: the server, its CAs with their hashes, the signatures, and the problems. */
export function renderClusterInfo(report: ClusterInfoReport, view: View): string {
  const { server = '(none)', cas, signatures, faults } = report
  return joinSections([
    fieldLines(view, [['server', server]]),
    cas.length === 0 ? ['no CA'] : caLines(cas, view),
    signatureLines(signatures, view),
    markedLines(
      faults.map((fault) => ({ ...fault, mark: 'NO' })),
      view,
    ),
  ])
}

/** Returns a line for each comparison, and the verdict. */
export function renderVerification(report: ClusterInfoVerification, view: View): string {
  const { verdict, checks, server = '(none)' } = report
  const question = 'Do joining nodes reach and trust this cluster with kube-public/cluster-info?'
  return joinSections([
    fieldLines(view, [['server', server]]),
    questionLines(question, verdict, checks, view),
  ])
}

/** Returns the written or planned changes, and the current state of the signatures. */
export function renderUpdate(report: ClusterInfoUpdate, view: View): string {
  const { outcome, diff, after, signatures, backup } = report
  const words = {
    updated: 'updated, and signed with every token',
    unchanged: 'unchanged: it already has these CAs, in this order',
    'would-update': 'would be updated (--dry-run)',
    declined: 'declined: nothing was written',
  }
  return joinSections([
    fieldLines(view, [
      ['cluster-info', words[outcome]],
      ['backup', backup],
    ]),
    diffLines(diff, view),
    caLines(after, view),
    outcome === 'would-update' ? [] : signatureLines(signatures, view),
  ])
}

/** Returns the discovery token CA cert hashes, one for each line. */
export function renderPins({ cas }: CaPins, view: View): string {
  return joinSections([caLines(cas, view)])
}

function caLines(cas: readonly CaFacts[], view: View): string[] {
  // A shortened hash cannot be copied.
  return table({ ...view, width: Math.max(view.width, 110) }, cas, [
    { title: 'CA', cell: ({ subject }) => subject || '(empty)', shrinkTo: 12 },
    { title: 'EXPIRES', cell: ({ notAfter }) => minuteOf(notAfter) },
    { title: 'PIN', cell: ({ pin }) => pin },
  ])
}

const signatureStates: Readonly<Record<SignatureFacts['state'], StatusText>> = {
  valid: ['valid', 'ok'],
  stale: ['stale: does not match the current text and token', 'critical'],
  missing: ['missing', 'critical'],
  orphaned: ['orphaned: no signing token has this ID', 'warning'],
  unknown: ['unknown: you may not read its Secret', 'warning'],
}

function signatureLines(signatures: readonly SignatureFacts[], view: View): string[] {
  const fields = signatures.map(({ tokenId, state }): Field => {
    const [word, tone] = signatureStates[state]
    return [`signature of ${tokenId}`, word, view.paint.status[tone]]
  })
  return fields.length === 0 ? ['no signatures'] : fieldLines(view, fields)
}
