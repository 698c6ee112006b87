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
import { causesOf } from './problems.ts'
import { shownStatus } from './status.ts'
import { summaryLine } from './summary.ts'
import { timeLeftOf } from './time-left.ts'
import { type Verdict, verdictsOf } from './verdict.ts'

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

/** Returns the report as one page: the next actions, the problems by cause, and a timeline with expandable details. */
export function renderHtml(report: InspectionReport): string {
  const { verdicts, others } = verdictsOf(report)
  return page({ title: 'Certificates', generatedAt: report.generatedAt }, [
    verdicts.length === 0
      ? html``
      : html`<ul class="plain">
${verdicts.map(verdictItem)}</ul>
`,
    html`<p class="lead">${summaryLine(report)}</p>
<p class="faint">Evaluated as of ${time(report.at)}.</p>
`,
    problemSection(others),
    timelineSection(report),
    requestSection(report),
    otherSection(report),
  ])
}

function verdictItem({ text, next, isCritical }: Verdict): Markup {
  return html`<li class="${isCritical ? 'bad' : 'warning'}"><p><strong>${text}</strong></p>${commandOf(next)}</li>
`
}

function commandOf(next: string): Markup {
  return next === '' ? html`` : html`<p>Next: <code>${next}</code></p>`
}

function problemSection(problems: readonly Problem[]): Markup {
  const causes = causesOf(problems)
  if (causes.length === 0) return html``
  return section(
    'Problems',
    html`<ul class="plain">
${causes.map(causeItem)}</ul>
`,
  )
}

function causeItem([first, ...rest]: readonly [Problem, ...Problem[]]): Markup {
  const { severity, code, message, fix = '', next } = first
  const tone = toneOfSeverity[severity]
  const places = [first, ...rest].map(
    (one) => html`<li>${pathText(placeText(one))}${one.message === message ? '' : `: ${one.message}`}</li>`,
  )
  return html`<li class="${tone}">${badge(severity, tone)} <strong>${code}</strong>
<p>${message}</p>${fix === '' ? html`` : html`<p>Fix: ${fix}</p>`}${commandOf(next)}<ul>${places}</ul></li>
`
}

/** A path wraps after a slash. It wraps within a name only if the name alone is wider than its column. */
function pathText(path: string): Markup {
  const [first = '', ...rest] = path.split('/')
  return html`${first}${rest.map((part) => html`/<wbr>${part}`)}`
}

function timelineSection({ certificates, at }: InspectionReport): Markup {
  if (certificates.length === 0) return html``
  return section(
    'Expiry',
    table<CertificateReport>(
      'The bar is the time left. Its scale gets coarser with the distance from now.',
      [
        { title: 'Certificate', kind: 'name', cell: (one) => nameCell(one) },
        {
          title: 'Status',
          kind: 'short',
          cell: ({ status }) => badge(shownStatus[status], toneOfStatus[status]),
        },
        { title: 'Expires', kind: 'short', cell: ({ notAfter }) => time(notAfter) },
        { title: 'Left', kind: 'short', cell: (one) => timeLeftOf(one, at) },
        {
          title: 'Timeline',
          kind: 'bar',
          cell: (one) =>
            bar(
              one.secondsLeft,
              toneOfStatus[one.status],
              `${shownStatus[one.status]}, ${timeLeftOf(one, at)}`,
            ),
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
    ['path', placeText(one)],
    ['valid from', one.notBefore],
    ['valid until', one.notAfter],
    ['SANs', altNameList(one.subjectAltNames).join(', ')],
    ['key', keyText(one.publicKey)],
    ['private key', one.key && `${placeText(one.key)} ${one.key.matches ? 'matches' : 'DOES NOT MATCH'}`],
    ['CA', one.isCa ? 'TRUE' : 'FALSE'],
    ['usages', [...one.keyUsage, ...one.extendedKeyUsage].join(', ')],
    ['serial number', one.serialNumber],
    ['SHA-256', one.fingerprintSha256],
  ]
  return html`${name}<details><summary>${pathText(placeText(one))}</summary><dl>${fields
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([label, value]) => html`<dt>${label}</dt><dd>${value}</dd>`)}</dl></details>`
}

function requestSection({ requests }: InspectionReport): Markup {
  if (requests.length === 0) return html``
  return section(
    'Requests',
    table(
      'Certificate signing requests in the inputs.',
      [
        { title: 'Request', kind: 'name', cell: ({ subject }) => shortName(subject) },
        { title: 'SANs', cell: ({ subjectAltNames }) => altNameList(subjectAltNames).join(', ') },
        { title: 'Signer', cell: ({ signerName }) => signerName ?? '' },
        { title: 'Condition', cell: ({ condition }) => condition ?? '' },
        { title: 'Path', cell: (one) => pathText(placeText(one)) },
      ],
      requests,
    ),
  )
}

/** Contexts, keys, and files without a certificate. */
function otherSection({ kubeconfigs, withoutCertificate, missing, keys, tokens }: InspectionReport): Markup {
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
        ({ kind, format, ...place }) =>
          `${placeText(place)}: ${kind} key (${format}) without a certificate in the inputs`,
      ),
    ...tokens.map(
      ({ subject, keyId = 'none', expirationTimestamp = 'never', ...place }) =>
        `${placeText(place)}: token of ${subject}, key ID ${keyId}, expires: ${expirationTimestamp}`,
    ),
    ...withoutCertificate.map(({ reason, ...place }) => `${placeText(place)}: ${reason}`),
    ...missing.map(({ source, role }) => `${source}: missing (${role})`),
  ]
  if (lines.length === 0) return html``
  return section('Other findings', html`<ul>${lines.map((line) => html`<li>${line}</li>\n`)}</ul>\n`)
}
