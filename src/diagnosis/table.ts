import type { Found } from './report.ts'
import type { CauseRow, Check, Rule } from './rule.ts'
import { command, conditionOf, sentence } from './sentence.ts'

// Reads the tables of errors (rules/). A row is a mark and a text, which goes on in indented lines:
//
//   # id generic if CONDITION: what the error means         "generic": its words count only where nothing says more
//   > words by which it is known | others                   "tls alert: NAME" are the words of every program for that alert
//   - id if CONDITION: a cause of it                        the likeliest first
//     ! what in the text speaks for this cause
//     $ kcert inspect {kubeconfig} # what the command shows when it is this cause
//   - id, id                                                causes that stand further above, the last of each name
//   - id if CONDITION                                       such a cause, on another condition
//   // a remark
//
// Texts and conditions are in the language of sentence.ts.

/** Returns the rows of a table. */
export function readTable(table: string): Rule[] {
  const named = new Map<string, CauseRow>()
  return table
    .replaceAll(/^\/\/.*\n/gm, '')
    .replaceAll(/\n {2,}(?![!$] )/g, ' ')
    .split(/^# /m)
    .slice(1)
    .map((rule) => {
      const [rows = '', ...causes] = rule.trimEnd().split('\n- ')
      const [first = '', ...words] = rows.split('\n> ')
      const { text = '', ...head } = headOf(first)
      return {
        ...head,
        words: words.flatMap((row) => row.split(' | ').flatMap(wordsOf)),
        means: (found) => sentence(text, found) ?? '',
        causes: causes.flatMap((cause) => causesOf(cause, named)),
      }
    })
}

function causesOf(rows: string, named: Map<string, CauseRow>): CauseRow[] {
  const [first = '', ...others] = rows.split(/\n {2}(?=[!$] )/)
  const { id, text, holds } = headOf(first)
  if (text === undefined)
    return id.split(', ').map((one) => ({ ...causeNamed(one, named), ...(holds && { holds }) }))
  const evidence = others.find((row) => row.startsWith('! '))?.slice('! '.length)
  const checks = others.filter((row) => row.startsWith('$ ')).map((row) => row.slice('$ '.length))
  const cause: CauseRow = {
    id,
    ...(holds && { holds }),
    detail: (found) => sentence(text, found) ?? '',
    evidence: (found) => evidence && sentence(evidence, found),
    checks: (found) => checksOf(checks, found),
  }
  named.set(id, cause)
  return [cause]
}

function causeNamed(id: string, named: ReadonlyMap<string, CauseRow>): CauseRow {
  const cause = named.get(id)
  if (cause === undefined) throw new Error(`a table of errors has no cause "${id}" above`)
  return cause
}

function headOf(row: string) {
  const [, id = '', generic, condition, text] =
    /^(.+?)( generic)?(?: if ([^:]+))?(?:: (.+))?$/.exec(row) ?? []
  return {
    id,
    text,
    isGeneric: generic !== undefined,
    ...(condition === undefined ? {} : { holds: conditionOf(condition) }),
  }
}

/** Returns the commands of rows, and what they show. Left out are those that need a fact which is unknown. */
export function checksOf(rows: readonly string[], found: Found): Check[] {
  return rows.flatMap((row) => {
    const [text = '', shows = ''] = row.split(' # ')
    const line = command(text, found)
    return line === undefined ? [] : [{ command: line, shows: sentence(shows, found) ?? '' }]
  })
}

/** The name of an alert in Go's words, and in those of OpenSSL (of two generations), BoringSSL, Java and rustls. */
function wordsOf(words: string): string[] {
  const [, go, openssl = go] = /^tls alert: (.+?)(?: \/ (.+))?$/.exec(words) ?? []
  if (go === undefined) return [words]
  return [
    `tls: ${go}`,
    `sslv3 alert ${openssl}`,
    `tlsv1 alert ${openssl}`,
    `tlsv13 alert ${openssl}`,
    `ssl/tls alert ${openssl}`,
    `received fatal alert: ${openssl}`,
  ]
}
