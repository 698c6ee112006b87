import type { CertificateReport, InspectionReport, Severity } from '../../inspection/report.ts'
import { printable } from '../terminal.ts'

type Labels = Readonly<Record<string, string>>

/** One metric with its samples; the key is the text of the labels, so that no label set comes twice. */
interface Metric {
  readonly name: string
  readonly help: string
  readonly samples: ReadonlyMap<string, number>
}

const severities: readonly Severity[] = ['info', 'warning', 'critical']

/**
 * Returns the report in Prometheus' text format, for node_exporter's textfile collector: times in seconds since 1970.
 * A label set stands there once: node_exporter refuses the whole file otherwise. Of two certificates with the
 * same labels the one that expires first stands for both.
 */
export function renderPrometheus(report: InspectionReport): string {
  // A file that the kubelet no longer uses must not raise an alarm.
  const certificates = soonestFirst(report.certificates.filter(({ isReplaced }) => !isReplaced))
  return [
    {
      name: 'kcert_certificate_not_after_timestamp_seconds',
      help: 'When the certificate expires.',
      samples: samples(certificates, certificateLabels, ({ notAfter }) => seconds(notAfter)),
    },
    {
      name: 'kcert_certificate_not_before_timestamp_seconds',
      help: 'When the certificate becomes valid.',
      samples: samples(certificates, certificateLabels, ({ notBefore }) => seconds(notBefore)),
    },
    {
      name: 'kcert_certificate_status',
      help: 'Always 1; the label status says ok, warning, critical, expired or not-yet-valid.',
      samples: samples(
        certificates,
        (one) => ({ ...certificateLabels(one), status: one.status }),
        () => 1,
      ),
    },
    {
      name: 'kcert_problem',
      help: 'Always 1; one for each problem that was found.',
      samples: samples(
        report.problems,
        ({ source, entry, code, severity }) => ({ source, entry, code, severity }),
        () => 1,
      ),
    },
    {
      name: 'kcert_problems',
      help: 'How many problems were found, by severity.',
      samples: samples(
        severities,
        (severity) => ({ severity }),
        (severity) => report.summary.problems[severity],
      ),
    },
    {
      name: 'kcert_inspected_sources',
      help: 'How many files and servers were inspected.',
      samples: new Map([['', report.summary.sources]]),
    },
    {
      name: 'kcert_inspection_timestamp_seconds',
      help: 'When the inspection was made.',
      samples: new Map([['', seconds(report.generatedAt)]]),
    },
  ]
    .map(metricText)
    .join('')
}

// The status metric has one more label, so the order decides there too which of two equal ones is kept.
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

function metricText({ name, help, samples }: Metric): string {
  let text = `# HELP ${name} ${help}\n# TYPE ${name} gauge\n`
  for (const [labels, value] of samples) text += `${name}${labels} ${value}\n`
  return text
}

function labelText(labels: Labels): string {
  return `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${labelValue(value)}"`)
    .join(',')}}`
}

function labelValue(value: string): string {
  return printable(value).replaceAll('\\', '\\\\').replaceAll('"', '\\"')
}

function seconds(rfc3339: string): number {
  return Math.floor(Date.parse(rfc3339) / 1000)
}
