import type { CertificateReport, InspectionReport, Severity } from '../../inspection/report.ts'
import { type Labels, labelText, metric } from '../metrics-text.ts'

const severities: readonly Severity[] = ['info', 'warning', 'critical']

/**
 * Returns the report in Prometheus' text format, for node_exporter's textfile collector, with times in seconds since 1970. Each
 * label set appears once: node_exporter refuses the whole file otherwise. Of two certificates with the same labels, the one that
 * expires first is used.
 */
export function renderPrometheus(report: InspectionReport): string {
  // A file that the kubelet no longer uses must not trigger an alert.
  const certificates = soonestFirst(report.certificates.filter(({ isReplaced }) => !isReplaced))
  const { problems, summary, generatedAt } = report
  const one = (): number => 1
  return [
    metric(
      'certificate_not_after_timestamp_seconds',
      'When the certificate expires.',
      samples(certificates, certificateLabels, ({ notAfter }) => seconds(notAfter)),
    ),
    metric(
      'certificate_not_before_timestamp_seconds',
      'When the certificate becomes valid.',
      samples(certificates, certificateLabels, ({ notBefore }) => seconds(notBefore)),
    ),
    metric(
      'certificate_status',
      'Always 1; the label status says ok, warning, critical, expired or not-yet-valid.',
      samples(certificates, (its) => ({ ...certificateLabels(its), status: its.status }), one),
    ),
    metric(
      'problem',
      'Always 1; one for each problem that was found.',
      samples(problems, ({ source, entry, code, severity }) => ({ source, entry, code, severity }), one),
    ),
    metric(
      'problems',
      'How many problems were found, by severity.',
      samples(
        severities,
        (severity) => ({ severity }),
        (severity) => summary.problems[severity],
      ),
    ),
    metric(
      'inspected_sources',
      'How many files and servers were inspected.',
      new Map([['', summary.sources]]),
    ),
    metric(
      'inspection_timestamp_seconds',
      'When the inspection was made.',
      new Map([['', seconds(generatedAt)]]),
    ),
  ].join('')
}

// The status metric has one more label, so the order also decides there which of two equal label sets is kept.
function soonestFirst(certificates: readonly CertificateReport[]): CertificateReport[] {
  return [...certificates].sort((a, b) => a.secondsLeft - b.secondsLeft)
}

function certificateLabels({
  source,
  entry,
  role,
  subject,
  issuer,
  serialNumber,
}: CertificateReport): Labels {
  return { source, entry, role: role ?? '', subject: subject.text, issuer: issuer.text, serial: serialNumber }
}

/** Keyed by the text of the labels, so that each label set appears once. */
function samples<Item>(
  items: readonly Item[],
  labels: (item: Item) => Labels,
  value: (item: Item) => number,
): ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  for (const item of items) {
    const key = labelText(labels(item))
    if (!found.has(key)) found.set(key, value(item))
  }
  return found
}

function seconds(rfc3339: string): number {
  return Math.floor(Date.parse(rfc3339) / 1000)
}
