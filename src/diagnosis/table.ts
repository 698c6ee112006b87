import type { ErrorExplanation, Found } from './report.ts'
import { command, conditionOf, sentence } from './sentence.ts'

// Reads the tables of errors (rules/). A row is a mark and a text, which continues on indented lines:
//
//   # id generic if CONDITION: the meaning of the error     "generic": its phrases count only if the text has no other error
//   > a phrase | another phrase                             "tls alert: NAME" means the phrases of every program for that alert
//   - id if CONDITION: a cause of it                        the likeliest first
//     ! evidence for this cause in the text
//     $ kcert inspect {kubeconfig} # the command's output for this cause
//   - id, id                                                causes from earlier rows, the last one with each name
//   - id if CONDITION                                       such a cause, under another condition
//   // a remark
//
// Texts and conditions are in the language of sentence.ts.

/** A command that distinguishes a cause from the others, and its output for this cause. */
export type Check = ErrorExplanation['next'][number]

/** One possible cause of an error. */
export interface CauseRow {
  readonly id: string
  /** The cause is omitted if this returns false. */
  readonly holds?: (found: Found) => boolean
  /** Evidence for this cause in the text. A cause with evidence is listed first. */
  readonly evidence: (found: Found) => string | undefined
  readonly detail: (found: Found) => string
  readonly checks: (found: Found) => Check[]
}

/** One row of the error tables: its phrases, its meaning, and its causes, the likeliest first. */
export interface Rule {
  readonly id: string
  /** Phrases of Go, Kubernetes, OpenSSL, Node, Python, Java and browsers. Compared without case and white space. */
  readonly words: readonly string[]
  /** If several rules have the same phrases, the first one that returns true is used. */
  readonly holds?: (found: Found) => boolean
  /** The phrases are unspecific, and count only if the text contains no other error. */
  readonly isGeneric: boolean
  readonly means: (found: Found) => string
  readonly causes: readonly CauseRow[]
}

/** Returns the rules of a table. */
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

/** Returns the commands of rows, with their expected output. Omits those that need an unknown fact. */
export function checksOf(rows: readonly string[], found: Found): Check[] {
  return rows.flatMap((row) => {
    const [text = '', shows = ''] = row.split(' # ')
    const line = command(text, found)
    return line === undefined ? [] : [{ command: line, shows: sentence(shows, found) ?? '' }]
  })
}

/** Returns the phrases for an alert: Go's, and those of OpenSSL (two generations), BoringSSL, Java and rustls. */
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
