import type { ContextReport, CreatedKubeconfig, KubeconfigEdit } from '../kubeconfig/report.ts'
import { markedLines } from './check-lines.ts'
import { fieldLines } from './fields.ts'
import { diffLines, joinSections } from './sections.ts'
import { printable } from './terminal.ts'
import { secondOf } from './time.ts'
import type { View } from './view.ts'

/** Returns the edits, and the contexts that work now. */
export function renderEdit(report: KubeconfigEdit, view: View): string {
  const { outcome, file, clusters, users, diff, backup, contexts } = report
  const words = {
    edited: 'edited',
    unchanged: 'unchanged: it already has these values',
    'would-edit': 'would be edited (--dry-run)',
  }
  return joinSections([
    fieldLines(view, [
      ['kubeconfig', `${file}: ${words[outcome]}`],
      ['clusters', clusters.join(', ')],
      ['users', users.join(', ')],
      ['backup', backup],
    ]),
    diffLines(diff, view),
    contextLines(contexts, view),
  ])
}

/** Returns the path of the kubeconfig, its user, and whether it works. */
export function renderCreated(report: CreatedKubeconfig, view: View): string {
  const { outcome, file, server, cluster, user, credential, notAfter, contexts } = report
  return joinSections([
    fieldLines(view, [
      ['kubeconfig', outcome === 'written' ? file : `${file} would be written (--dry-run)`],
      ['server', server],
      ['cluster', cluster],
      ['user', `${user} (${credential})`],
      ['not after', notAfter && secondOf(notAfter)],
    ]),
    contextLines(contexts, view),
  ])
}

function contextLines(contexts: readonly ContextReport[] | undefined, view: View): string[] {
  if (contexts === undefined) return []
  const marks = { works: 'ok', fails: 'NO', unreachable: '?' } as const
  return [
    view.paint.heading('Which contexts work?'),
    ...markedLines(
      contexts.map(({ name, outcome, username, groups = [], error }) => ({
        mark: marks[outcome],
        id: printable(name),
        detail:
          outcome === 'works'
            ? `the API server authenticates ${username === undefined ? 'it' : `it as ${username}`}${groups.length > 0 ? ` (${groups.join(', ')})` : ''}`
            : [error?.what, error?.why].filter((part) => part !== undefined).join(': '),
        fix: error?.fix,
        next: error?.next,
      })),
      view,
    ),
  ]
}
