import type {
  CreatedToken,
  DeletedTokens,
  TokenCheck,
  TokenList,
  TokenReport,
} from '../bootstrap/token-report.ts'
import { checkLines } from './check-lines.ts'
import { type Field, fieldLines } from './fields.ts'
import { joinSections } from './sections.ts'
import { type Column, tableLines } from './table.ts'
import { printable } from './terminal.ts'
import { secondOf, timeLeft } from './time.ts'
import type { View } from './view.ts'

/** Returns the tokens as a table, without their second halves. */
export function renderTokenList({ tokens, generatedAt }: TokenList, { width, paint }: View): string {
  if (tokens.length === 0) return 'no bootstrap tokens\n'
  const now = Date.parse(generatedAt)
  const columns: Column<TokenReport>[] = [
    { title: 'ID', cell: ({ id }) => id },
    {
      title: 'STATE',
      cell: ({ state }) => state,
      paint: ({ state }, cell) => (state === 'valid' ? paint.status.ok : paint.severity.critical)(cell),
    },
    { title: 'EXPIRES', cell: ({ expiration }) => expirationText(expiration, now) },
    { title: 'USAGES', cell: ({ usages }) => usages.join(', '), shrinkTo: 10 },
    { title: 'GROUPS', cell: ({ groups }) => groups.join(', '), shrinkTo: 12, cut: 'middle' },
    { title: 'DESCRIPTION', cell: ({ description = '' }) => description, shrinkTo: 8, dropRank: 2 },
    {
      title: 'WHAT IS WRONG',
      cell: ({ faults }) => faults.map(({ detail }) => detail).join('; '),
      shrinkTo: 12,
      dropRank: 1,
    },
  ]
  return `${tableLines(columns, tokens, width, paint).join('\n')}\n`
}

function expirationText(expiration: string | undefined, now: number): string {
  if (expiration === undefined) return 'never'
  const seconds = (Date.parse(expiration) - now) / 1000
  return seconds <= 0 ? secondOf(expiration) : `in ${timeLeft(seconds)}`
}

/** Returns what was made, without the secret: that is the answer itself, or in the file. */
export function renderCreation(report: CreatedToken, view: View): string {
  const { outcome, id, expiration, usages, groups, description, file, server } = report
  const fields: Field[] = [
    ['token', `${id} ${outcome === 'created' ? 'is created' : 'would be created (--dry-run)'}`],
    ['expires', expiration === undefined ? 'never' : secondOf(expiration)],
    ['usages', usages.join(', ')],
    ['groups', groups.join(', ')],
    ['description', description],
    ['server', server],
    ['secret in', file],
  ]
  return `${fieldLines(fields, view).join('\n')}\n`
}

/** Returns what became of each token. */
export function renderDeletion({ tokens }: DeletedTokens): string {
  const words = {
    deleted: 'deleted',
    'would-delete': 'would be deleted (--dry-run)',
    'not-found': 'not found',
    changed: 'changed by somebody else meanwhile, and left alone',
  }
  if (tokens.length === 0) return 'no token has expired\n'
  return tokens.map(({ id, outcome }) => `token ${printable(id)}  ${words[outcome]}\n`).join('')
}

/** Returns the token, and line by line whether a newcomer gets in with it. */
export function renderTokenCheck({ token, checks, verdict }: TokenCheck, view: View): string {
  const { status, severity, heading } = view.paint
  const words = {
    ok: status.ok('yes'),
    no: severity.critical('NO'),
    unknown: status.warning('not all of it could be looked at'),
  }
  const fields: Field[] =
    token === undefined
      ? []
      : [
          ['token', token.id],
          ['expires', token.expiration === undefined ? 'never' : secondOf(token.expiration)],
          ['usages', token.usages.join(', ')],
          ['groups', token.groups.join(', ')],
          ['description', token.description],
        ]
  return joinSections([
    fieldLines(fields, view),
    [`${heading('Does a newcomer get in with it?')} ${words[verdict]}`, ...checkLines(checks, view)],
  ])
}
