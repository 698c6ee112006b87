/**
 * How long a request of the prober may take. exec and logs pass a kubelet and the container runtime, which are slow when the machine
 * is busy; a certificate that is refused ends them at once.
 */
export const longestMs = { api: 5_000, counter: 5_000, logs: 15_000, exec: 15_000 } as const

/** One line of the prober: the attempt and its outcome. */
export interface Sample {
  readonly at: string
  readonly kind: 'api' | 'logs' | 'exec' | 'counter' | 'node' | 'aggregated' | 'webhook' | 'signing'
  readonly endpoint?: string
  readonly trust?: string
  readonly credential?: string
  readonly target?: string
  /** ok, or the class of the failure: unauthorized, forbidden, http, untrusted, tls, refused, timeout, cut, starting, error. */
  readonly outcome: string
  readonly status?: number
  readonly ms: number
  readonly error?: string
  readonly counts?: {
    readonly attempts: number
    readonly failures: number
    readonly errors: Record<string, number>
  }
}

/**
 * The outcomes that matching samples may have: a row of the expectation table. Absent fields match everything. Rows add up: each
 * outcome that a matching row allows is expected. Samples that match no row must be ok.
 */
export interface Expectation {
  readonly kind?: Sample['kind']
  readonly endpoint?: string
  readonly trust?: string
  readonly credential?: string
  readonly target?: string
  /** RFC 3339; the row applies from this time. */
  readonly from?: string
  /** RFC 3339; the row applies before this time. */
  readonly until?: string
  /** The allowed outcomes; `*` allows all. */
  readonly allow: readonly string[]
  /** The reason, from the author of the table. */
  readonly because?: string
}

/** The observations of one cell (endpoint, trust, credential, target). */
export interface CellVerdict {
  readonly cell: string
  readonly samples: number
  readonly unexpected: number
  /** Longest time between two successes, or from the start, or to the end. */
  readonly longestGapMs: number
  readonly slowestMs: number
}

export interface Verdict {
  readonly holds: boolean
  readonly samples: number
  readonly unexpected: readonly Sample[]
  readonly cells: readonly CellVerdict[]
}

/** Parses the prober's lines. Ignores a truncated last line. */
export function parseSamples(text: string): Sample[] {
  const lines = text.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'))
  return lines.map((line) => JSON.parse(line) as Sample)
}

/** Evaluates samples with a table. In-pod counters are evaluated by the growth of their failures from one sample to the next. */
export function evaluate(samples: readonly Sample[], table: readonly Expectation[]): Verdict {
  const failuresBefore = new Map<string, number>()
  const unexpected: Sample[] = []
  const cells = new Map<string, Sample[]>()
  const bad = new Set<Sample>()
  for (const raw of [...samples].sort((a, b) => a.at.localeCompare(b.at))) {
    const sample = raw.kind === 'counter' ? counterOutcome(limited(raw), failuresBefore) : limited(raw)
    const cell = cellOf(sample)
    const observed = cells.get(cell)
    if (observed === undefined) cells.set(cell, [sample])
    else observed.push(sample)
    const rows = table.filter((expectation) => matches(expectation, sample))
    const allowed = rows.length === 0 ? ['ok'] : rows.flatMap(({ allow }) => allow)
    if (!allowed.includes(sample.outcome) && !allowed.includes('*')) {
      unexpected.push(sample)
      bad.add(sample)
    }
  }
  const verdicts = [...cells].map(([cell, observed]) => ({
    cell,
    samples: observed.length,
    unexpected: observed.filter((sample) => bad.has(sample)).length,
    longestGapMs: longestGap(observed),
    slowestMs: Math.max(...observed.map(({ ms }) => ms)),
  }))
  return { holds: unexpected.length === 0, samples: samples.length, unexpected, cells: verdicts }
}

/**
 * Splits off the timeouts of logs and exec of which each is the only one of its cell. On a busy machine, the start of a process in a
 * container can take longer than the prober waits. The next probe, seconds later, succeeded.
 */
export function withoutLoneTimeouts(unexpected: readonly Sample[]): {
  readonly failures: readonly Sample[]
  readonly slow: readonly Sample[]
} {
  const cells = Map.groupBy(unexpected, cellOf)
  const isSlow = (sample: Sample): boolean =>
    (sample.kind === 'exec' || sample.kind === 'logs') &&
    sample.outcome === 'timeout' &&
    cells.get(cellOf(sample))?.length === 1
  return {
    failures: unexpected.filter((sample) => !isSlow(sample)),
    slow: unexpected.filter(isSlow),
  }
}

/** Returns the verdict as text: a line for each cell with unexpected outcomes, and one for the whole. */
export function describeVerdict(verdict: Verdict): string {
  const lines = verdict.cells
    .filter(({ unexpected }) => unexpected > 0)
    .map(
      ({ cell, samples, unexpected, longestGapMs }) =>
        `${cell}: ${unexpected} of ${samples} unexpected, longest gap ${longestGapMs} ms`,
    )
  const examples = verdict.unexpected
    .slice(0, 5)
    .map((sample) => `  ${sample.at} ${cellOf(sample)}: ${sample.outcome} ${sample.error ?? ''}`)
  const summary = `${verdict.samples} samples in ${verdict.cells.length} cells: ${verdict.holds ? 'as expected' : `${verdict.unexpected.length} unexpected`}`
  return [...lines, ...examples, summary, ''].join('\n')
}

function matches(row: Expectation, sample: Sample): boolean {
  const named = (['kind', 'endpoint', 'trust', 'credential', 'target'] as const).every(
    (field) => row[field] === undefined || row[field] === sample[field],
  )
  const at = Date.parse(sample.at)
  const after = row.from === undefined || at >= Date.parse(row.from)
  const before = row.until === undefined || at < Date.parse(row.until)
  return named && after && before
}

/** The prober waits as long as the slowest kind may take. The watcher has limits of its own. */
function limited(sample: Sample): Sample {
  const isLate = sample.kind in longestMs && sample.ms > longestMs[sample.kind as keyof typeof longestMs]
  return isLate ? { ...sample, outcome: 'timeout' } : sample
}

/** A counter is ok when it has no new failure since the previous sample. Its first sample is the baseline. */
function counterOutcome(sample: Sample, before: Map<string, number>): Sample {
  if (sample.counts === undefined || sample.target === undefined) return sample
  const last = before.get(sample.target)
  before.set(sample.target, sample.counts.failures)
  if (last === undefined || sample.counts.failures <= last) return sample
  return { ...sample, outcome: 'failures', error: JSON.stringify(sample.counts.errors) }
}

function cellOf(sample: Sample): string {
  return [sample.kind, sample.endpoint, sample.trust, sample.credential, sample.target]
    .filter((part) => part !== undefined)
    .join(' ')
}

function longestGap(samples: readonly Sample[]): number {
  const times = samples.filter(({ outcome }) => outcome === 'ok').map(({ at }) => Date.parse(at))
  const edges = [Date.parse(samples[0]!.at), ...times, Date.parse(samples.at(-1)!.at)]
  return edges.slice(1).reduce((longest, time, index) => Math.max(longest, time - edges[index]!), 0)
}
