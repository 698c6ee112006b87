import type { Pause } from '../../../cluster/api-client.ts'
import type { Cluster } from '../../../cluster/cluster.ts'
import { restUntil } from '../../../cluster/resting.ts'
import { KcertError, messageOf } from '../../../errors/kcert-error.ts'
import { renderWatchMetrics, type WatchSamples } from '../../../output/watch-metrics.ts'
import type { Clock } from '../../../system/clock.ts'
import { watchObjects } from './objects.ts'
import { PartSamples } from './part.ts'
import { watchApiServers, watchKubelets, watchWebhooks } from './served.ts'
import { watchCaBundles, watchClusterInfo, watchRequests, watchRotations } from './states.ts'

interface WatcherPorts {
  readonly cluster: Cluster
  readonly clock: Clock
  readonly pause: Pause
  /** Returns a number from 0 to 1. */
  readonly draw: () => number
  /** Called when a part fails that did not, and with undefined when it works again. */
  readonly tell: (part: string, failure: KcertError | undefined) => void
}

export interface WatchSettings {
  readonly intervalMs: number
  /** Reads the certificates in all Secrets. */
  readonly readSecrets: boolean
}

type Scan = (cluster: Cluster, to: PartSamples, now: Date, readSecrets: boolean) => Promise<void>

const objectsOf =
  (plural: string): Scan =>
  (cluster, to, now) =>
    watchObjects(cluster, plural, to, now)

/** The parts of a scan, in order. Each fails by itself. */
const scans: Readonly<Record<string, Scan>> = {
  'api-servers': watchApiServers,
  kubelets: watchKubelets,
  webhooks: watchWebhooks,
  'ca-bundles': watchCaBundles,
  'cluster-info': watchClusterInfo,
  requests: watchRequests,
  rotations: watchRotations,
  secrets: objectsOf('secrets'),
  configmaps: objectsOf('configmaps'),
  validatingwebhookconfigurations: objectsOf('validatingwebhookconfigurations'),
  mutatingwebhookconfigurations: objectsOf('mutatingwebhookconfigurations'),
  apiservices: objectsOf('apiservices'),
  customresourcedefinitions: objectsOf('customresourcedefinitions'),
  clustertrustbundles: objectsOf('clustertrustbundles'),
}

/** Results that are older than this many intervals are no longer shown. */
const mostIntervals = 3

interface PartState {
  readonly scan: Scan
  samples: WatchSamples
  leftOut: number
  /** Undefined until the first attempt. */
  isFailed: boolean | undefined
  failures: number
  succeededMs: number | undefined
  durationMs: number | undefined
  isBusy: boolean
}

/** Reads the cluster at an interval. One part after the other, so that memory is bounded by the largest. */
export class Watcher {
  private readonly ports: WatcherPorts
  private readonly settings: WatchSettings
  private readonly states = new Map<string, PartState>()

  constructor(ports: WatcherPorts, settings: WatchSettings) {
    this.ports = ports
    this.settings = settings
    for (const [part, scan] of Object.entries(scans))
      if (part !== 'secrets' || settings.readSecrets) this.states.set(part, newState(scan))
  }

  /** Returns when the signal aborts; a part in progress then ends by itself. */
  async run(signal: AbortSignal): Promise<void> {
    const { pause, draw } = this.ports
    while (!signal.aborted) {
      await this.scanAll(signal)
      // A tenth more or less, so that the controllers of many clusters do not scan together.
      await restUntil(pause, this.settings.intervalMs * (0.9 + draw() / 5), signal)
    }
  }

  /** Returns after one scan, or when the signal aborts. Never throws: a part that fails is counted. */
  async scanAll(signal: AbortSignal): Promise<void> {
    for (const [part, state] of this.states) if (!signal.aborted) await this.scan(part, state, signal)
  }

  /** Returns the metrics in Prometheus' text format; none before the first scan. */
  render(): string {
    const nowMs = this.ports.clock().getTime()
    const own = new PartSamples(this.ports.clock())
    const shown = [...this.states].map(([part, state]) => {
      const { isFailed, failures, succeededMs, durationMs, leftOut, samples } = state
      if (isFailed === undefined) return new Map()
      const isOld = nowMs - (succeededMs ?? 0) > mostIntervals * this.settings.intervalMs
      own.set('scan_failed', { part }, Number(isFailed || isOld))
      own.set('scan_failures_total', { part }, failures)
      if (succeededMs !== undefined)
        own.set('scan_last_success_timestamp_seconds', { part }, Math.floor(succeededMs / 1000))
      if (durationMs !== undefined) own.set('scan_duration_seconds', { part }, durationMs / 1000)
      if (isFailed || isOld) return new Map()
      own.set('scan_left_out', { part }, leftOut)
      return samples
    })
    return renderWatchMetrics([...shown, own.samples], nowMs)
  }

  private async scan(part: string, state: PartState, signal: AbortSignal): Promise<void> {
    const { cluster, clock, pause, tell } = this.ports
    const began = performance.now()
    const to = new PartSamples(clock())
    let failure: KcertError | undefined
    try {
      if (state.isBusy) throw hung(this.settings.intervalMs)
      state.isBusy = true
      const scanning = state.scan(cluster, to, clock(), this.settings.readSecrets).finally(() => {
        state.isBusy = false
      })
      const ended = new AbortController()
      const deadline = restUntil(
        pause,
        this.settings.intervalMs,
        AbortSignal.any([signal, ended.signal]),
      ).then(() => {
        if (!ended.signal.aborted) throw hung(this.settings.intervalMs)
      })
      try {
        await Promise.race([scanning, deadline])
      } finally {
        ended.abort()
        // The loser of the race must not end the process.
        scanning.catch(() => {})
        deadline.catch(() => {})
      }
    } catch (error) {
      failure =
        error instanceof KcertError
          ? error
          : new KcertError('KCERT_DEFECT', messageOf(error), { cause: error })
    }
    if (signal.aborted) return
    const wasFailed = state.isFailed === true
    state.durationMs = performance.now() - began
    state.isFailed = failure !== undefined
    if (failure === undefined) {
      state.succeededMs = clock().getTime()
      state.samples = to.finish().samples
      state.leftOut = to.leftOut
    } else {
      state.failures++
      state.samples = new Map()
    }
    if (wasFailed !== state.isFailed) tell(part, failure)
  }
}

function newState(scan: Scan): PartState {
  return {
    scan,
    samples: new Map(),
    leftOut: 0,
    isFailed: undefined,
    failures: 0,
    succeededMs: undefined,
    durationMs: undefined,
    isBusy: false,
  }
}

function hung(intervalMs: number): KcertError {
  return new KcertError('KCERT_UNREACHABLE', `it did not end within ${intervalMs / 1000} s`)
}
