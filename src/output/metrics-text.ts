import { printable } from './terminal.ts'

// Prometheus' text format.

export type Labels = Readonly<Record<string, string>>

/** Returns a metric of kcert with its samples: the text of the labels → the value. Names that end in _total are counters. */
export function metric(name: string, help: string, samples: Iterable<readonly [string, number]>): string {
  const lines = [...samples].map(([labels, value]) => `kcert_${name}${labels} ${value}\n`)
  return `# HELP kcert_${name} ${help}\n# TYPE kcert_${name} ${metricType(name)}\n${lines.join('')}`
}

export function metricType(name: string): 'counter' | 'gauge' {
  return name.endsWith('_total') ? 'counter' : 'gauge'
}

export function labelText(labels: Labels): string {
  return `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${labelValue(value)}"`)
    .join(',')}}`
}

function labelValue(value: string): string {
  return printable(value).replaceAll('\\', '\\\\').replaceAll('"', '\\"')
}
