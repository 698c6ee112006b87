import type {
  CertificateReport,
  CertificateStatus,
  InspectionReport,
  Problem,
} from '../../inspection/report.ts'
import { html, type Markup } from '../html/markup.ts'
import { badge, page, section, type Tone, table, time } from '../html/page.ts'
import { axis, bar } from '../html/timeline.ts'
import { altNameList, keyText, shortName } from '../names.ts'
import { placeText } from '../places.ts'
import { summaryLine } from './summary.ts'
import { timeLeftOf } from './time-left.ts'

const toneOfStatus: Readonly<Record<CertificateStatus, Tone>> = {
  ok: 'good',
  warning: 'warning',
  critical: 'bad',
  expired: 'bad',
  'not-yet-valid': 'warning',
}
const toneOfSeverity: Readonly<Record<Problem['severity'], Tone>> = {
  info: 'quiet',
  warning: 'warning',
  critical: 'bad',
}

/** Returns the report as one page: a timeline of what expires when, all fields behind a click, and what is wrong. */
export function renderHtml(report: InspectionReport): string {
  return page({ title: 'Certificates', generatedAt: report.generatedAt }, [
    html`<p class="lead">${summaryLine(report)}</p>
<p class="faint">Judged as of ${time(report.at)}.</p>
`,
    timelineSection(report),
    problemSection(report.problems),
    requestSection(report),
    otherSection(report),
  ])
}

function problemSection(problems: readonly Problem[]): Markup {
  if (problems.length === 0) return html``
  return section(
    'What is wrong',
    html`<ul class="plain">
${problems.map(problemItem)}</ul>
`,
  )
}

function problemItem({ severity, code, message, fix = '', next, ...place }: Problem): Markup {
  const tone = toneOfSeverity[severity]
  return html`<li class="${tone}">${badge(severity, tone)} <strong>${code}</strong> <span>${placeText(place)}</span>
<p>${message}</p>${fix === '' ? html`` : html`<p>Fix: ${fix}</p>`}${next === '' ? html`` : html`<pre>${next}</pre>`}</li>
`
}

function timelineSection({ certificates, at }: InspectionReport): Markup {
  if (certificates.length === 0) return html``
  return section(
    'When they expire',
    table<CertificateReport>(
      'The bar is the time that is left; its scale grows with the distance from now.',
      [
        { title: 'Certificate', kind: 'name', cell: (one) => nameCell(one) },
        { title: 'Status', kind: 'short', cell: ({ status }) => badge(status, toneOfStatus[status]) },
        { title: 'Expires', kind: 'short', cell: ({ notAfter }) => time(notAfter) },
        { title: 'Left', kind: 'short', cell: (one) => timeLeftOf(one, at) },
        {
          title: 'Timeline',
          kind: 'bar',
          cell: (one) =>
            bar(one.secondsLeft, toneOfStatus[one.status], `${one.status}, ${timeLeftOf(one, at)}`),
        },
      ],
      certificates,
      axis(),
    ),
  )
}

function nameCell(one: CertificateReport): Markup {
  const name = one.role ?? shortName(one.subject)
  const fields: readonly (readonly [string, string | undefined])[] = [
    ['subject', one.subject.text],
    ['issuer', one.issuer.text],
    ['place', placeText(one)],
    ['valid from', one.notBefore],
    ['valid until', one.notAfter],
    ['names', altNameList(one.subjectAltNames).join(', ')],
    ['key', keyText(one.publicKey)],
    ['private key', one.key && `${placeText(one.key)} ${one.key.matches ? 'matches' : 'does NOT match'}`],
    ['authority', one.isCa ? 'yes' : 'no'],
    ['usages', [...one.keyUsage, ...one.extendedKeyUsage].join(', ')],
    ['serial number', one.serialNumber],
    ['SHA-256', one.fingerprintSha256],
  ]
  return html`${name}<details><summary>${placeText(one)}</summary><dl>${fields
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([label, value]) => html`<dt>${label}</dt><dd>${value}</dd>`)}</dl></details>`
}

function requestSection({ requests }: InspectionReport): Markup {
  if (requests.length === 0) return html``
  return section(
    'Requests',
    table(
      'Certificate requests among the inputs.',
      [
        { title: 'Request', kind: 'name', cell: ({ subject }) => shortName(subject) },
        { title: 'Names', cell: ({ subjectAltNames }) => altNameList(subjectAltNames).join(', ') },
        { title: 'Signer', cell: ({ signerName }) => signerName ?? '' },
        { title: 'Condition', cell: ({ condition }) => condition ?? '' },
        { title: 'Place', cell: placeText },
      ],
      requests,
    ),
  )
}

/** What holds no certificate and is worth a line all the same. */
function otherSection({ kubeconfigs, withoutCertificate, missing, keys }: InspectionReport): Markup {
  const lines = [
    ...kubeconfigs.flatMap(({ contexts, currentContext, clusters, ...place }) =>
      contexts.map(
        ({ name, cluster, user }) =>
          `${placeText(place)}: context ${name}${name === currentContext ? ' (current)' : ''}: user ${user} at ${clusters.find((one) => one.name === cluster)?.server ?? cluster}`,
      ),
    ),
    ...keys
      .filter(({ matches }) => matches.length === 0)
      .map(
        ({ kind, format, ...place }) => `${placeText(place)}: ${kind} key (${format}) of no certificate here`,
      ),
    ...withoutCertificate.map(({ reason, ...place }) => `${placeText(place)}: ${reason}`),
    ...missing.map(({ source, role }) => `${source}: missing (${role})`),
  ]
  if (lines.length === 0) return html``
  return section('Beside the certificates', html`<ul>${lines.map((line) => html`<li>${line}</li>\n`)}</ul>\n`)
}
