import { hostPort } from '../errors/host-port.ts'
import type { ClientVerdict, EndpointReport, ProbeReport } from '../probe/report.ts'
import { fieldLines } from './fields.ts'
import { shortName } from './names.ts'
import type { Paint } from './paint.ts'
import { joinSections } from './sections.ts'
import { type Column, tableLines } from './table.ts'
import { printable } from './terminal.ts'
import { minuteOf, timeLeft } from './time.ts'
import type { View } from './view.ts'

/** Returns a table of the endpoints, then what is wrong with each and what to do next; of a single one everything that was seen. */
export function renderProbe(report: ProbeReport, view: View): string {
  const { endpoints, notes, generatedAt } = report
  const { width, paint } = view
  const [only] = endpoints
  return joinSections([
    endpoints.length === 0
      ? []
      : tableLines(columnsAt(Date.parse(generatedAt), paint), endpoints, width, paint),
    ...(endpoints.length === 1 && only !== undefined && only.chain.length > 0
      ? [detailLines(only, view)]
      : []),
    ...endpoints.flatMap((one) => problemSections(one, view)),
    noteLines(endpoints, notes),
    [summaryText(report)],
  ])
}

const words = { ok: 'ok', no: 'NO', unreachable: 'NOT REACHED' } as const

function columnsAt(now: number, paint: Paint): Column<EndpointReport>[] {
  return [
    { title: 'ENDPOINT', cell: ({ name }) => name, shrinkTo: 14, cut: 'middle' },
    { title: 'ADDRESS', cell: addressCell, shrinkTo: 14, cut: 'middle', dropRank: 2 },
    {
      title: 'ANSWER',
      cell: ({ status }) => words[status],
      paint: ({ status }, cell) => strokeOf(status, paint)(cell),
    },
    { title: 'TLS', cell: ({ version }) => version?.replace('TLSv', '') ?? '' },
    {
      title: 'LEAF',
      cell: ({ chain }) => (chain[0] === undefined ? '' : shortName(chain[0].subject)),
      shrinkTo: 12,
      dropRank: 5,
    },
    {
      title: 'LEFT',
      cell: ({ chain }) =>
        chain[0] === undefined ? '' : timeLeft((Date.parse(chain[0].notAfter) - now) / 1000),
    },
    { title: 'NAMES', cell: namesCell, dropRank: 6 },
    { title: 'TRUSTED', cell: trustCell, shrinkTo: 10, dropRank: 1 },
    { title: 'CLIENT CERT', cell: ({ client }) => clientCell(client), shrinkTo: 10, dropRank: 3 },
    { title: 'SERVES', cell: servesCell, shrinkTo: 12, dropRank: 4 },
    { title: 'TIME', cell: timeCell, dropRank: 7 },
  ]
}

function strokeOf(status: EndpointReport['status'], { status: stroke }: Paint): (text: string) => string {
  return status === 'ok' ? stroke.ok : stroke.expired
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

const shortAnchors: Readonly<Record<string, string>> = {
  '--kubelet-certificate-authority': 'kubelet CA',
}

function trustCell({ verdicts, isVerified }: EndpointReport): string {
  const cells = verdicts.map(({ by, trusted }) => {
    const answer = trusted === undefined ? '?' : trusted ? 'yes' : 'no'
    return `${answer} (${shortAnchors[by] ?? by})`
  })
  return [...cells, ...(isVerified || cells.length === 0 ? [] : ['nobody asks'])].join(', ')
}

const clientWords: Readonly<Record<ClientVerdict['verdict'], string>> = {
  accepted: 'accepted',
  refused: 'REFUSED',
  ignored: 'ignored',
  'let-in': 'let in',
  'not-asked': 'not asked for',
  'not-tried': 'asked for',
  unknown: 'no answer',
}

function clientCell(client: ClientVerdict | undefined): string {
  if (client === undefined) return ''
  const { verdict, detail } = client
  if (verdict === 'not-tried') return detail === undefined ? 'asked for' : 'demanded'
  return verdict === 'accepted' && detail?.startsWith('as ') ? `accepted ${detail}` : clientWords[verdict]
}

const givenWords = {
  served: 'what it was given',
  'renewed-not-served': 'THE OLD ONE',
  other: 'ANOTHER ONE',
  unknown: '',
} as const

function servesCell({ given }: EndpointReport): string {
  return given === undefined ? '' : givenWords[given.state]
}

function timeCell({ connectMs, handshakeMs }: EndpointReport): string {
  return handshakeMs === undefined ? '' : `${Math.round((connectMs ?? 0) + handshakeMs)} ms`
}

/** All that was seen of one endpoint. */
function detailLines(endpoint: EndpointReport, view: View): string[] {
  const {
    version,
    cipher,
    chain,
    names,
    verdicts,
    clientAuthorities,
    client,
    given,
    connectMs,
    handshakeMs,
  } = endpoint
  const [leaf] = chain
  return fieldLines(
    [
      ['version', [version, cipher].filter(Boolean).join(', ')],
      [
        'time',
        [connectMs === undefined ? '' : `connected in ${connectMs} ms`, `handshake ${handshakeMs} ms`]
          .filter(Boolean)
          .join(', '),
      ],
      ...chain.map(({ subject, issuer, notAfter }, index): [string, string] => [
        index === 0 ? 'leaf' : `sent along ${index}`,
        `${subject.text || '(empty subject)'}, until ${minuteOf(notAfter)} UTC, by ${issuer.text}`,
      ]),
      ['fingerprint', leaf && `sha256:${leaf.fingerprintSha256}`],
      ['valid for', leaf && [...leaf.dnsNames, ...leaf.ipAddresses].join(', ')],
      ['reached as', names.map(({ name, matches }) => (matches ? name : `${name} (not in it)`)).join(', ')],
      ...verdicts.map(({ by, source, trusted, reason }): [string, string] => [
        `by ${by}`,
        `${trusted === undefined ? 'not known' : trusted ? 'trusted' : 'not trusted'}${reason === undefined ? '' : `: ${reason}`} (${source})`,
      ]),
      ['client CAs', clientAuthorities?.join('; ') || (clientAuthorities && 'any')],
      ['client', client && [clientCell(client), client.subject, client.detail].filter(Boolean).join(', ')],
      ['given', given && `${given.source}: ${given.fault ?? givenText(given.state)}`],
    ],
    view,
  )
}

function givenText(state: keyof typeof givenWords): string {
  return state === 'served'
    ? 'it is what is served'
    : state === 'other'
      ? 'another is served'
      : 'newer than what is served'
}

function problemSections({ name, problems, verdicts }: EndpointReport, view: View): string[][] {
  return problems.map(({ code, message, next }) => {
    const words =
      code === 'NOT_TRUSTED' ? verdicts.find(({ trusted }) => trusted === false)?.goError : undefined
    return fieldLines(
      [
        [name, `${code}: ${message}`, view.paint.severity.critical],
        ['in Go', words],
        ['next', next],
      ],
      view,
    )
  })
}

/** What many endpoints have to say is said once. */
function noteLines(endpoints: readonly EndpointReport[], notes: readonly string[]): string[] {
  const counts = new Map<string, number>()
  for (const { notes: own } of endpoints)
    for (const note of own) counts.set(note, (counts.get(note) ?? 0) + 1)
  const shared = [...counts].map(([note, count]) => (endpoints.length > 1 ? `${note} (${count})` : note))
  return [...shared, ...notes].map((note) => `note: ${printable(note)}`)
}

function summaryText({ endpoints, summary }: ProbeReport): string {
  const { ok, no, unreachable } = summary
  const counts = [
    [ok, 'ok'],
    [no, 'with something wrong'],
    [unreachable, 'not reached'],
  ] as const
  const said = counts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  return `${endpoints.length} ${endpoints.length === 1 ? 'endpoint' : 'endpoints'}: ${said.join(', ') || 'nothing to probe'}`
}
