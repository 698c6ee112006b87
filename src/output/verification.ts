import type { VerificationReport, VerificationWarning, VerifiedCertificate } from '../verification/report.ts'
import { shortName } from './names.ts'
import { placeText } from './places.ts'
import { adviceLines, joinSections, shownAdvice } from './sections.ts'
import { statusColumn, table } from './table.ts'
import { printable } from './terminal.ts'
import { minuteOf, secondOf } from './time.ts'
import type { View } from './view.ts'
import { padded, wrapped } from './width.ts'

type Field = readonly [label: string, value: string | undefined]

/**
 * Returns the verdict: yes or no first, then the chain, then the reason and what to do, then the verifiers with another result.
 */
export function renderVerification(report: VerificationReport, view: View): string {
  return joinSections([
    verdictLines(report, view),
    ...(report.trusted ? report.chains : [report.path ?? [report.leaf]]).map((chain) =>
      table(view, chain, [
        { title: 'CHAIN', cell: (one) => roleOf(one, chain, report.trusted) },
        { title: 'SUBJECT', cell: ({ subject }) => shortName(subject), shrinkTo: 14 },
        { title: 'EXPIRES (UTC)', cell: ({ notAfter }) => minuteOf(notAfter), dropRank: 1 },
        statusColumn('AT FAULT', view.paint, ({ fingerprintSha256 }) => [
          fingerprintSha256 === report.certificate?.fingerprintSha256 ? 'at fault' : '',
          'critical',
        ]),
        { title: 'FOUND IN', cell: placeText, shrinkTo: 12, cut: 'middle', dropRank: 2 },
      ]),
    ),
    fieldLines(report.trusted ? trustedFields(report) : refusedFields(report), view),
    ...groupedDifferences(report).map((group) => differenceLines(group, view)),
    ...report.warnings.map((warning) => warningLines(warning, view)),
  ])
}

const purposeTexts = {
  server: 'as a server certificate',
  client: 'as a client certificate',
  any: 'for any purpose',
} as const

function verdictLines(
  { trusted, purpose, name, code }: VerificationReport,
  { width, paint }: View,
): string[] {
  const verdict = trusted ? paint.status.ok('TRUSTED') : paint.status.expired('NOT TRUSTED')
  const use = `${purposeTexts[purpose]}${name === undefined ? '' : ` for ${printable(name)}`}`
  const why = trusted ? '' : `: ${code}`
  const [first = '', ...rest] = wrapped(`${use}${why}`, width - (trusted ? 8 : 12))
  return [`${verdict} ${first}`, ...rest]
}

function roleOf(one: VerifiedCertificate, chain: readonly VerifiedCertificate[], trusted: boolean): string {
  if (one === chain[0]) return 'leaf'
  // If the chain is not trusted, the last certificate is not known to be a root.
  return trusted && one === chain.at(-1) ? 'root' : 'issuer'
}

function trustedFields({ at, trustedUntil, name, purpose, user }: VerificationReport): Field[] {
  const groups = user?.groups.length ? `, groups ${user.groups.join(', ')}` : ''
  return [
    ['verified at', secondOf(at)],
    ['trusted until', trustedUntil && secondOf(trustedUntil)],
    [
      'host name',
      name === undefined && purpose === 'server' ? 'not checked; to check one: --name HOST' : undefined,
    ],
    ['user', user && `${user.name || '(no name)'}${groups}`],
    ['user UID', user?.uid],
  ]
}

function refusedFields(report: VerificationReport): Field[] {
  const { reason, advice, certificate, issuer, goError, at } = report
  const { fix, next } = shownAdvice(report)
  return [
    ['reason', reason],
    ['advice', advice],
    ['fix', fix],
    ['next', next],
    ['at fault', certificate && `${certificate.subject.text || '(empty subject)'}`],
    ['found in', certificate && placeText(certificate)],
    ['fingerprint', certificate && `sha256:${certificate.fingerprintSha256}`],
    ['tried issuer', issuer && `${placeText(issuer)} (sha256:${issuer.fingerprintSha256})`],
    ['in Go', goError],
    ['verified at', secondOf(at)],
  ]
}

// The next step is not wrapped: it may be a command, and text that the terminal wraps is copied as one line.
function fieldLines(fields: readonly Field[], { width, paint }: View): string[] {
  const shown = fields.filter(([, value]) => value !== undefined)
  const labelWidth = Math.max(...shown.map(([label]) => label.length))
  return shown.flatMap(([label, value = '']) => {
    const text = printable(value)
    const lines = label === 'next' ? [text] : wrapped(text, width - labelWidth - 2)
    return lines.map((line, i) =>
      i === 0 ? `${paint.heading(padded(label, labelWidth))}  ${line}` : `${' '.repeat(labelWidth)}  ${line}`,
    )
  })
}

type Difference = VerificationReport['differences'][number]

const titles = { openssl: 'openssl verify', node: 'Node.js 24', python: 'Python 3.13' } as const

/** Groups verifiers with the same result for the same reason. */
function groupedDifferences({ differences }: VerificationReport): Difference[][] {
  return [...Map.groupBy(differences, ({ accepts, reason }) => `${accepts} ${reason}`).values()]
}

function differenceLines(group: readonly Difference[], view: View): string[] {
  const [{ accepts, reason } = { accepts: false, reason: '' }] = group
  const { error } = group.find((difference) => difference.error !== undefined) ?? {}
  const who = group.map(({ verifier }) => titles[verifier]).join(', ')
  const says = error === undefined ? '' : ` (${error})`
  return labelled('differs', `${accepts ? 'accepted' : 'refused'} by ${who}: ${reason}${says}`, view)
}

function warningLines(warning: VerificationWarning, view: View): string[] {
  const { code, message, fix, next } = warning
  const place = placeText(warning)
  return [
    ...labelled('warning', `${code} ${place}: ${message}`, view),
    ...adviceLines({ fix, next }, ' '.repeat(9)),
  ]
}

function labelled(label: string, text: string, { width, paint }: View): string[] {
  const [first = '', ...rest] = wrapped(printable(text), width - 9)
  return [`${paint.severity.warning(padded(label, 7))}  ${first}`, ...rest.map((line) => `         ${line}`)]
}
