import { hostPort } from '../errors/host-port.ts'
import type { ClientVerdict, EndpointReport, ProbeReport } from '../probe/report.ts'
import { type Field, fieldLines } from './fields.ts'
import { shortName } from './names.ts'
import type { Paint } from './paint.ts'
import { joinSections } from './sections.ts'
import { type Column, type StatusText, statusColumn, table } from './table.ts'
import { printable } from './terminal.ts'
import { minuteOf, timeLeft } from './time.ts'
import type { View } from './view.ts'

/**
 * Returns a table of the endpoints, then the problems of each and what to do next. For a single endpoint, returns all details.
 */
export function renderProbe(report: ProbeReport, view: View): string {
  const { endpoints, notes, generatedAt } = report
  const [only, second] = endpoints
  return joinSections([
    table(view, endpoints, columnsAt(Date.parse(generatedAt), view.paint)),
    only === undefined || second !== undefined || only.chain.length === 0 ? [] : detailLines(only, view),
    ...endpoints.flatMap((one) => problemSections(one, view)),
    noteLines(endpoints, notes),
    [summaryText(report)],
  ])
}

const answers: Readonly<Record<EndpointReport['status'], StatusText>> = {
  ok: ['ok', 'ok'],
  failed: ['NO', 'critical'],
  unreachable: ['NOT REACHED', 'critical'],
}

function columnsAt(now: number, paint: Paint): Column<EndpointReport>[] {
  return [
    { title: 'ENDPOINT', cell: ({ name }) => name, shrinkTo: 14, cut: 'middle' },
    { title: 'ADDRESS', cell: addressCell, shrinkTo: 14, cut: 'middle', dropRank: 2 },
    statusColumn('ANSWER', paint, ({ status }) => answers[status]),
    { title: 'TLS', cell: ({ version }) => version?.replace('TLSv', '') ?? '' },
    {
      title: 'LEAF',
      cell: ({ chain: [leaf] }) => (leaf ? shortName(leaf.subject) : ''),
      shrinkTo: 12,
      dropRank: 5,
    },
    {
      title: 'LEFT',
      cell: ({ chain: [leaf] }) => (leaf ? timeLeft((Date.parse(leaf.notAfter) - now) / 1000) : ''),
    },
    { title: 'SANS', cell: namesCell, dropRank: 6 },
    { title: 'TRUSTED', cell: trustCell, shrinkTo: 10, dropRank: 1 },
    { title: 'CLIENT CERT', cell: ({ client }) => clientCell(client), shrinkTo: 10, dropRank: 3 },
    { title: 'SERVES', cell: servesCell, shrinkTo: 12, dropRank: 4 },
    { title: 'TIME', cell: timeCell, dropRank: 7 },
  ]
}

function addressCell({ host, port, from }: EndpointReport): string {
  const address = hostPort(host, port)
  return from === undefined ? address : `${address} on ${from}`
}

function namesCell({ names, chain }: EndpointReport): string {
  if (chain.length === 0 || names.length === 0) return ''
  const missing = names.filter(({ matches }) => !matches)
  return missing.length === 0 ? 'yes' : `not ${missing.map(({ name }) => name).join(', ')}`
}

function trustCell({ verdicts, isVerified }: EndpointReport): string {
  const cells = verdicts.map(({ by, trusted }) => {
    const answer = trusted === undefined ? '?' : trusted ? 'yes' : 'no'
    return `${answer} (${by === '--kubelet-certificate-authority' ? 'kubelet CA' : by})`
  })
  return [...cells, ...(isVerified || cells.length === 0 ? [] : ['not checked'])].join(', ')
}

const clientWords: Readonly<Record<ClientVerdict['verdict'], string>> = {
  accepted: 'accepted',
  refused: 'REFUSED',
  ignored: 'ignored',
  connected: 'connected',
  'not-requested': 'not requested',
  'not-tested': 'requested',
  unknown: 'unknown',
}

function clientCell(client: ClientVerdict | undefined): string {
  if (client === undefined) return ''
  const { verdict, detail, user } = client
  if (verdict === 'not-tested') return detail === undefined ? 'requested' : 'required'
  return user === undefined ? clientWords[verdict] : `accepted as ${user}`
}

const givenWords = {
  served: 'current',
  'renewed-not-served': 'OLD',
  other: 'OTHER',
  unknown: '',
} as const

function servesCell({ issued }: EndpointReport): string {
  return issued === undefined ? '' : givenWords[issued.state]
}

function timeCell({ connectMs, handshakeMs }: EndpointReport): string {
  return handshakeMs === undefined ? '' : `${Math.round((connectMs ?? 0) + handshakeMs)} ms`
}

function detailLines(endpoint: EndpointReport, view: View): string[] {
  const { version, cipher, chain, names, verdicts, clientCas, client, issued } = endpoint
  const { connectMs, handshakeMs } = endpoint
  const [leaf] = chain
  const connected = connectMs === undefined ? '' : `connected in ${connectMs} ms, `
  return fieldLines(view, [
    ['version', [version, cipher].filter(Boolean).join(', ')],
    ['time', `${connected}handshake ${handshakeMs} ms`],
    ...chain.map(
      ({ subject, issuer, notAfter }, index): Field => [
        index === 0 ? 'leaf' : `intermediate ${index}`,
        `${subject.text || '(empty subject)'}, until ${minuteOf(notAfter)} UTC, by ${issuer.text}`,
      ],
    ),
    ['fingerprint', leaf && `sha256:${leaf.fingerprintSha256}`],
    ['valid for', leaf && [...leaf.dnsNames, ...leaf.ipAddresses].join(', ')],
    [
      'reached as',
      names.map(({ name, matches }) => (matches ? name : `${name} (not in the SANs)`)).join(', '),
    ],
    ...verdicts.map(
      ({ by, source, trusted, reason }): Field => [
        `by ${by}`,
        `${trusted === undefined ? 'unknown' : trusted ? 'trusted' : 'not trusted'}${reason === undefined ? '' : `: ${reason}`} (${source})`,
      ],
    ),
    ['client CAs', clientCas?.join('; ') || (clientCas && 'any')],
    ['client', client && [clientCell(client), client.subject, client.detail].filter(Boolean).join(', ')],
    ['last issued', issued && `${issued.source}: ${issued.fault ?? givenTexts[issued.state]}`],
  ])
}

const givenTexts: Readonly<Record<keyof typeof givenWords, string>> = {
  served: 'same as the served certificate',
  'renewed-not-served': 'newer than the served certificate',
  other: 'the server serves another certificate',
  unknown: 'newer than the served certificate',
}

function problemSections({ name, problems, verdicts }: EndpointReport, view: View): string[][] {
  return problems.map(({ code, message, next }) => {
    const words =
      code === 'NOT_TRUSTED' ? verdicts.find(({ trusted }) => trusted === false)?.goError : undefined
    return fieldLines(view, [
      [name, `${code}: ${message}`, view.paint.status.critical],
      ['in Go', words],
      ['next', next],
    ])
  })
}

/** A note that applies to many endpoints is reported once. */
function noteLines(endpoints: readonly EndpointReport[], notes: readonly string[]): string[] {
  const said = Map.groupBy(
    endpoints.flatMap(({ notes: own }) => own),
    (note) => note,
  )
  const shared = [...said].map(([note, { length }]) => (endpoints.length > 1 ? `${note} (${length})` : note))
  return [...shared, ...notes].map((note) => `note: ${printable(note)}`)
}

function summaryText({ endpoints, summary }: ProbeReport): string {
  const { ok, failed, unreachable } = summary
  const counts = [
    [ok, 'ok'],
    [failed, 'with problems'],
    [unreachable, 'unreachable'],
  ] as const
  const said = counts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  return `${endpoints.length} ${endpoints.length === 1 ? 'endpoint' : 'endpoints'}: ${said.join(', ') || 'nothing to probe'}`
}
