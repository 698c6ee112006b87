import { harmlessJson } from '../errors/hidden-text.ts'
import type { ErrorFields } from '../errors/kcert-error.ts'
import { html, type Markup } from './html/markup.ts'
import { badge, type Tone as PageTone, page, section, table } from './html/page.ts'
import { type Labels, labelText, metric } from './metrics-text.ts'
import type { Tone } from './paint.ts'
import { adviceLines, counted } from './sections.ts'
import { printable } from './terminal.ts'
import type { View } from './view.ts'
import { displayWidth, padded, shortened } from './width.ts'

// `kcert fleet`: many clusters, each written as soon as it was read. Names of clusters and sources come from files and objects of other
// users. Every line, label and cell has both, so that two clusters with the same name stay distinct.

/** A word for the result of a cluster. */
export type FleetStatus =
  | 'ok'
  | 'problems'
  | 'incomplete'
  | 'unreachable'
  | 'refused'
  | 'forbidden'
  | 'defect'

/** One cluster. */
export interface FleetRow<Report> {
  readonly cluster: string
  readonly source: string
  readonly server?: string
  readonly status: FleetStatus
  readonly error?: ErrorFields
  /** Absent if nothing was read. */
  readonly report?: Report
}

/** The number of clusters by result, the clusters without a complete result, and the files that are not kubeconfigs. */
export interface FleetSummary {
  readonly clusters: number
  readonly byStatus: Readonly<Partial<Record<FleetStatus, number>>>
  readonly notRead: readonly { cluster: string; source: string; status: FleetStatus; why: string }[]
  readonly skipped: readonly { source: string; reason: string }[]
}

/** How a command shows the report of a cluster. */
export interface FleetKind<Report> {
  /** The kind of its JSON. */
  readonly kind: string
  /** The title of the HTML page. */
  readonly title: string
  readonly columns: readonly {
    readonly title: string
    /** In characters, at least those of the title. */
    readonly width: number
    readonly cell: (report: Report) => string
  }[]
  /** What is wrong, one line each. */
  readonly details: (report: Report) => readonly string[]
  /** In Prometheus' text format, without the labels of the cluster. */
  readonly metrics: (report: Report) => string
}

/** Writes the clusters in one format: a text for each cluster, and one at the end. */
export interface FleetWriter<Report> {
  begin(): string
  row(row: FleetRow<Report>): string
  end(summary: FleetSummary, generatedAt: string): string
}

const tones: Readonly<Record<FleetStatus, Tone>> = {
  ok: 'ok',
  problems: 'warning',
  incomplete: 'critical',
  unreachable: 'critical',
  refused: 'critical',
  forbidden: 'critical',
  defect: 'critical',
}
const pageTones: Readonly<Record<Tone, PageTone>> = { ok: 'good', warning: 'warning', critical: 'bad' }

/** Returns lines of JSON: one for each cluster, then the summary. */
export function jsonWriter<Report>({ kind }: FleetKind<Report>): FleetWriter<Report> {
  const line = (document: object): string => `${harmlessJson(JSON.stringify(document))}\n`
  return {
    begin: () => '',
    row: (row) => line({ apiVersion: 'kcert/v1', kind, ...row }),
    end: (summary, generatedAt) =>
      line({ apiVersion: 'kcert/v1', kind: 'FleetSummary', generatedAt, ...summary }),
  }
}

/** Lines below a cluster in the table, and in the page. */
const mostDetails = 5
const mostDetailsOnPage = 200
const widestName = 48

/**
 * Returns a table that grows: the widths are known before the first cluster answers. Below a cluster are the lines that say what is
 * wrong.
 */
export function textWriter<Report>(
  { columns, details }: FleetKind<Report>,
  names: readonly string[],
  { width, paint, hasHeadings = true }: View,
): FleetWriter<Report> {
  const nameWidth = names.reduce(
    (most, name) => Math.max(most, Math.min(displayWidth(printable(name)), widestName)),
    'CLUSTER'.length,
  )
  const widths = [
    nameWidth,
    'unreachable'.length,
    ...columns.map((column) => Math.max(column.width, column.title.length)),
  ]
  const taken = widths.reduce((sum, one) => sum + one + 2, 0)
  const line = (cells: readonly string[], source: string, status?: FleetStatus): string => {
    const shown = cells.map((cell, index) => {
      const text = padded(printable(cell), widths[index] ?? 0)
      return index === 1 && status !== undefined ? paint.status[tones[status]](text) : text
    })
    const last = printable(source)
    const room = width - taken
    // Without room for a useful part of it, the source is on a line of its own.
    if (room < 16) return `${shown.join('  ').trimEnd()}\n    ${last}\n`
    return `${shown.join('  ')}  ${room === Number.POSITIVE_INFINITY ? last : shortened(last, room, 'start')}\n`
  }
  return {
    begin: () =>
      hasHeadings
        ? paint.heading(line(['CLUSTER', 'STATUS', ...columns.map(({ title }) => title)], 'SOURCE'))
        : '',
    row(row) {
      const { cluster, source, status, report, error } = row
      const cells = columns.map(({ cell }) => (report === undefined ? '' : cell(report)))
      const lines = report === undefined ? [] : details(report)
      const more = lines.length - mostDetails
      return [
        line([cluster, status, ...cells], source, status),
        ...(error === undefined ? [] : errorLines(error)),
        ...lines.slice(0, mostDetails).map((text) => `    ${printable(text)}\n`),
        ...(more > 0 ? [`    and ${more} more: -o json lists all\n`] : []),
      ].join('')
    },
    end: (summary) => `\n${summaryText(summary)}\n`,
  }
}

function errorLines({ code, what, why, fix, next }: ErrorFields): string[] {
  return [`    ${code}: ${printable(what)}`, ...adviceLines({ why, fix, next }, '    ')].map(
    (text) => `${text}\n`,
  )
}

/** Returns the number of clusters by result. */
function summaryText({ clusters, byStatus }: FleetSummary): string {
  const counts = Object.entries(byStatus).map(([status, count]) => `${count.toLocaleString('en')} ${status}`)
  return `${counted(clusters, 'cluster')}${counts.length === 0 ? '' : `: ${counts.join(', ')}`}`
}

/** Returns the metrics of all clusters, written at the end: in this format, all samples of a metric follow each other. */
export function prometheusWriter<Report>({ metrics }: FleetKind<Report>): FleetWriter<Report> {
  /** The lines HELP and TYPE of a metric → its samples. */
  const families = new Map<string, string[]>()
  const statuses: [string, number][] = []
  return {
    begin: () => '',
    row({ cluster, source, status, report }) {
      const labels = { cluster, cluster_source: source }
      statuses.push([labelText({ ...labels, status }), 1])
      if (report === undefined) return ''
      let family: string[] = []
      for (const [lines = ''] of metrics(report).matchAll(/(?:^# .*\n)+|^[^#].*\n/gm)) {
        if (!lines.startsWith('#')) {
          family.push(withLabels(lines, labels))
          continue
        }
        family = families.get(lines) ?? []
        families.set(lines, family)
      }
      return ''
    },
    end: (_, generatedAt) =>
      [
        metric(
          'fleet_cluster_status',
          'Always 1; the label status says ok, problems, incomplete, unreachable, refused, forbidden or defect.',
          statuses,
        ),
        metric('fleet_timestamp_seconds', 'When the last cluster was read.', [
          ['', Math.floor(Date.parse(generatedAt) / 1000)],
        ]),
        ...[...families].map(([head, samples]) => head + samples.join('')),
      ].join(''),
  }
}

/** Label values have no line feeds, so a sample is one line. */
function withLabels(sample: string, labels: Labels): string {
  const own = labelText(labels).slice(0, -1)
  const [, name = '', rest = ''] = /^(\w+)\{?(.*)$/s.exec(sample) ?? []
  const hasLabels = sample.charAt(name.length) === '{'
  return hasLabels ? `${name}${own},${rest}` : `${name}${own}}${rest}`
}

/** Returns one page with all clusters: a table, then what is wrong with each. */
export function htmlWriter<Report>({ title, columns, details }: FleetKind<Report>): FleetWriter<Report> {
  interface Kept extends Omit<FleetRow<Report>, 'report'> {
    readonly cells: readonly string[]
    readonly lines: readonly string[]
  }
  const rows: Kept[] = []
  return {
    begin: () => '',
    row({ report, ...row }) {
      const cells = columns.map(({ cell }) => (report === undefined ? '' : cell(report)))
      const lines = report === undefined ? [] : details(report)
      const more = lines.length - mostDetailsOnPage
      const shown = lines.slice(0, mostDetailsOnPage)
      rows.push({
        ...row,
        cells,
        lines: more > 0 ? [...shown, `and ${more} more: -o json lists all`] : shown,
      })
      return ''
    },
    end(summary, generatedAt) {
      const wrong = rows.filter(({ error, lines }) => error !== undefined || lines.length > 0)
      return page({ title, generatedAt }, [
        html`<p class="lead">${summaryText(summary)}</p>\n`,
        section(
          'Clusters',
          table<Kept>(
            'In the order in which they answered.',
            [
              { title: 'Cluster', kind: 'name', cell: ({ cluster }) => cluster },
              {
                title: 'Status',
                kind: 'short',
                cell: ({ status }) => badge(status, pageTones[tones[status]]),
              },
              ...columns.map((column, index) => ({
                title: column.title.charAt(0) + column.title.slice(1).toLowerCase(),
                cell: ({ cells }: Kept) => cells[index] ?? '',
              })),
              { title: 'Source', cell: ({ source }) => source },
            ],
            rows,
          ),
        ),
        wrong.length === 0 ? html`` : section('Problems', html`${wrong.map(wrongItem)}`),
      ])
    },
  }
}

function wrongItem({
  cluster,
  source,
  status,
  error,
  lines,
}: Omit<FleetRow<unknown>, 'report'> & { readonly lines: readonly string[] }): Markup {
  const said = error === undefined ? [] : errorLines(error).map((line) => line.trim())
  return html`<details><summary>${badge(status, pageTones[tones[status]])} ${cluster} <span class="faint">${source}</span></summary>
<ul>${[...said, ...lines].map((line) => html`<li>${line}</li>\n`)}</ul></details>
`
}
