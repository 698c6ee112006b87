import type { CreatedToken, DeletedTokens, TokenCheck, TokenList } from '../bootstrap/token-report.ts'
import { questionLines } from './check-lines.ts'
import { type Field, fieldLines } from './fields.ts'
import { joinSections } from './sections.ts'
import { statusColumn, table } from './table.ts'
import { printable } from './terminal.ts'
import { secondOf, timeLeft } from './time.ts'
import type { View } from './view.ts'

/** Returns the tokens as a table, without their secret parts. */
export function renderTokenList({ tokens, generatedAt }: TokenList, view: View): string {
  if (tokens.length === 0) return 'no bootstrap tokens\n'
  const now = Date.parse(generatedAt)
  return joinSections([
    table(view, tokens, [
      { title: 'ID', cell: ({ id }) => id },
      statusColumn('STATE', view.paint, ({ state }) => [state, state === 'valid' ? 'ok' : 'critical']),
      { title: 'EXPIRES', cell: ({ expiration }) => expirationText(expiration, now) },
      { title: 'USAGES', cell: ({ usages }) => usages.join(', '), shrinkTo: 10 },
      { title: 'GROUPS', cell: ({ groups }) => groups.join(', '), shrinkTo: 12, cut: 'middle' },
      { title: 'DESCRIPTION', cell: ({ description = '' }) => description, shrinkTo: 8, dropRank: 2 },
      {
        title: 'PROBLEMS',
        cell: ({ faults }) => faults.map(({ detail }) => detail).join('; '),
        shrinkTo: 12,
        dropRank: 1,
      },
    ]),
  ])
}

function expirationText(expiration: string | undefined, now: number): string {
  if (expiration === undefined) return 'never'
  const seconds = (Date.parse(expiration) - now) / 1000
  return seconds <= 0 ? secondOf(expiration) : `in ${timeLeft(seconds)}`
}

function tokenFields({
  expiration,
  usages,
  groups,
  description,
}: Pick<CreatedToken, 'expiration' | 'usages' | 'groups' | 'description'>): Field[] {
  return [
    ['expires', expiration === undefined ? 'never' : secondOf(expiration)],
    ['usages', usages.join(', ')],
    ['groups', groups.join(', ')],
    ['description', description],
  ]
}

/** Returns the created token without the secret, which is on standard output or in the file. */
export function renderCreation(report: CreatedToken, view: View): string {
  const { outcome, id, file, server } = report
  return joinSections([
    fieldLines(view, [
      ['token', `${id} ${outcome === 'created' ? 'created' : 'would be created (--dry-run)'}`],
      ...tokenFields(report),
      ['server', server],
      ['secret in', file],
    ]),
  ])
}

/** Returns the outcome for each token. */
export function renderDeletion({ tokens }: DeletedTokens): string {
  const words = {
    deleted: 'deleted',
    'would-delete': 'would be deleted (--dry-run)',
    'not-found': 'not found',
    changed: 'skipped: it changed meanwhile',
  }
  if (tokens.length === 0) return 'no token has expired\n'
  return tokens.map(({ id, outcome }) => `token ${printable(id)}  ${words[outcome]}\n`).join('')
}

/** Returns the token, and the checks of whether a node can join with it. */
export function renderTokenCheck({ token, checks, verdict }: TokenCheck, view: View): string {
  return joinSections([
    token === undefined ? [] : fieldLines(view, [['token', token.id], ...tokenFields(token)]),
    questionLines('Can a node join with this token?', verdict, checks, view),
  ])
}
