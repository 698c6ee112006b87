import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { basename } from 'node:path'
import { setTimeout as pauseFor } from 'node:timers/promises'
import type { Context } from '../../cli/context.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { resources } from '../../cluster/kinds.ts'
import { LeaseHolder } from '../../cluster/lease-holder.ts'
import { waiting } from '../../cluster/resting.ts'
import { missingRights, type Right, rightText } from '../../cluster/rights.ts'
import type { Acted } from '../../csr/approval/acting.ts'
import { type Evaluation, evaluateByPolicy } from '../../csr/approval/evaluation.ts'
import { controllerName, leftPending } from '../../csr/controller-events.ts'
import { exitCodes } from '../../errors/codes.ts'
import { KcertError, wordsOf } from '../../errors/kcert-error.ts'
import { type Decisions, renderControllerMetrics } from '../../output/controller-metrics.ts'
import type { LogEntry } from '../../output/log-line.ts'
import { printable } from '../../output/terminal.ts'
import { tuneForLittleMemory } from '../../system/engine.ts'
import type { Endpoint } from '../../tls/endpoint.ts'
import { approvalFactsOf } from '../csr/approval-facts.ts'
import { metricsType, type ServedText, serveTexts } from '../kubelet/metrics-output.ts'
import { Approver } from './approver.ts'
import { EventQueue, eventOf } from './events.ts'
import { type LoadedPolicies, PolicySource } from './policy-source.ts'
import { detailOf, refusalOf } from './refusal.ts'
import { neededRights } from './rights-table.ts'
import { Watcher, type WatchSettings } from './watch/watcher.ts'

// `kcert controller`: one leader approves pending requests and reads the certificates of the cluster. docs/decisions/0017-controller.md explains the design.

export interface ControllerSettings {
  /** As for --policy of `kcert csr approve`; undefined without --approve. */
  readonly approve: string | undefined
  /** Undefined without --watch. */
  readonly watch: WatchSettings | undefined
  readonly leaseNamespace: string
  /** Where /healthz, /readyz and /metrics are served. */
  readonly listen: Endpoint
}

export interface ControllerPorts {
  readonly cluster: Cluster
  /** For the Lease alone: with a short timeout, and not behind other calls. */
  readonly leaseCluster: Cluster
  /** For --watch: its calls end within an interval, also with `--request-timeout 0`. */
  readonly scanCluster: Cluster
  readonly context: Context
  readonly log: (entry: LogEntry) => void
  /** Aborted by SIGTERM and Ctrl-C. */
  readonly ended: AbortSignal
}

const policyPollMs = 5_000
const rightsPollMs = 60_000
/** Longer than any call with its retries, unless --request-timeout is very long. */
const stalledMs = 300_000
/** After SIGTERM, calls in progress and waiting Events get this time. Then the Lease is released, as far as that succeeds in time. */
const completionMs = 5_000
const longestStopMs = 8_000

/** Runs until `ended` aborts. Ends the process when the Lease is lost. */
export async function runController(settings: ControllerSettings, ports: ControllerPorts): Promise<void> {
  // A call in progress would be retried for much longer.
  const stop = (): unknown => setTimeout(() => process.exit(exitCodes.done), longestStopMs).unref()
  ports.ended.addEventListener('abort', stop)
  tuneForLittleMemory()
  const { approve } = settings
  const source = approve === undefined ? undefined : await PolicySource.open(approve, ports.context)
  try {
    await new Controller(settings, ports, source).run()
  } catch (error) {
    if (!(error instanceof KcertError) || error.code !== 'KCERT_LOCKED') throw error
    ports.log({ level: 'error', message: error.message, fields: { code: error.code, why: error.why } })
    // A write in progress would be retried until its timeout. Another replica may already act.
    process.exit(error.exitCode)
  }
}

class Controller {
  readonly #settings: ControllerSettings
  readonly #ports: ControllerPorts
  readonly #source: PolicySource | undefined
  readonly #watcher: Watcher | undefined
  readonly #instance = `${hostname()}_${randomUUID()}`
  readonly #lease: LeaseHolder
  readonly #counts = { lease: 0, policy: 0, watch: 0, created: 0, failed: 0 }
  readonly #decisions = new Map<string, Decisions>()
  readonly #basis = new WeakMap<Evaluation, LoadedPolicies>()
  readonly #events: EventQueue
  #approver: Approver | undefined
  #watchFailure: KcertError | undefined
  #eventFailure: KcertError | undefined
  #missing: readonly Right[] | undefined
  #missingText = 'not checked yet'

  constructor(settings: ControllerSettings, ports: ControllerPorts, source: PolicySource | undefined) {
    this.#settings = settings
    this.#ports = ports
    this.#source = source
    const { cluster, leaseCluster, scanCluster, context } = ports
    this.#watcher =
      settings.watch &&
      new Watcher(
        {
          ...{ cluster: scanCluster, clock: context.clock, pause: waiting, draw: Math.random },
          tell: (part, failure) => this.#tellScan(part, failure),
        },
        settings.watch,
      )
    this.#events = new EventQueue({
      objects: cluster.objects,
      pause: waiting,
      tell: (event, failure) => this.#noteEvent(event.involvedObject.name, failure),
    })
    this.#lease = new LeaseHolder({
      objects: leaseCluster.objects,
      name: controllerName,
      namespace: settings.leaseNamespace,
      identity: this.#instance,
      now: () => ({ monotonicMs: performance.now(), wallMs: context.clock().getTime() }),
      pause: waiting,
      draw: Math.random,
      tell: (failure) => {
        if (failure === undefined) return ports.log({ level: 'info', message: 'the Lease is readable again' })
        this.#counts.lease++
        ports.log({
          level: 'warning',
          message: 'the Lease could not be renewed',
          fields: errorFieldsOf(failure),
        })
      },
    })
  }

  async run(): Promise<void> {
    const { log, ended } = this.#ports
    const { listen, leaseNamespace } = this.#settings
    const server = await serveTexts('--listen', listen, {
      '/healthz': () => this.#health(),
      '/readyz': () => this.#readiness(),
      '/metrics': () => ({ status: 200, type: metricsType, text: this.#metrics() }),
    })
    const polling = [
      this.#every(policyPollMs, () => this.#pollPolicy()),
      this.#every(rightsPollMs, () => this.#pollRights()),
    ]
    log({ level: 'info', message: 'started', fields: { identity: this.#instance, listen: listen.name } })
    await this.#pollRights()
    try {
      await this.#lease.lead(async (signal) => {
        log({
          level: 'info',
          message: 'became the leader',
          fields: { lease: `${leaseNamespace}/${controllerName}` },
        })
        const source = this.#source
        await Promise.all([source && this.#approve(source, signal), this.#watcher?.run(signal)])
      }, ended)
      log({ level: 'info', message: 'stopped' })
    } finally {
      for (const timer of polling) clearInterval(timer)
      await server.close()
    }
  }

  /** Returns at the latest `completionMs` after the signal. Evaluations that are still in progress then get no confirmation to write. */
  async #approve(source: PolicySource, signal: AbortSignal): Promise<void> {
    const { cluster, context } = this.#ports
    const facts = approvalFactsOf(cluster, context.clock)
    const approver = new Approver({
      api: cluster.requests,
      watch: (until, tell) => cluster.objects.watch(resources.requests, {}, until, tell),
      evaluate: async (object) => {
        const used = source.current
        const evaluation = await evaluateByPolicy('approve', used.policies, facts)(object)
        this.#basis.set(evaluation, used)
        return evaluation
      },
      confirm: (evaluation) => this.#confirm(evaluation),
      tell: (acted) => this.#tell(acted),
      tellWatch: (failure) => this.#noteWatch(failure),
      nowMs: () => performance.now(),
      pause: waiting,
      draw: Math.random,
    })
    this.#approver = approver
    const decided = new AbortController()
    const work = Promise.all([
      approver.run(signal).finally(() => decided.abort()),
      this.#events.run(decided.signal),
    ])
    const ending = signal.aborted ? Promise.resolve() : once(signal, 'abort')
    const stopped = ending.then(() => pauseFor(completionMs, undefined, { ref: false }))
    await Promise.race([work, stopped])
  }

  /** Throws when this process stops or may have lost the Lease, or when the policy was replaced after the evaluation. */
  #confirm(evaluation: Evaluation): void {
    const why = 'the decision is not written; the request is evaluated again'
    if (this.#ports.ended.aborted)
      throw new KcertError('KCERT_LOCKED', 'this replica received a signal to stop', { why })
    if (!this.#lease.isLeader())
      throw new KcertError('KCERT_LOCKED', 'this replica is not the leader any more', { why })
    if (this.#basis.get(evaluation) !== this.#source?.current)
      throw new KcertError('KCERT_LOCKED', 'the policy was replaced during the evaluation', { why })
  }

  #noteWatch(failure: KcertError | undefined): void {
    const { log } = this.#ports
    const before = this.#watchFailure
    this.#watchFailure = failure
    if (failure !== undefined) this.#counts.watch++
    if (failure?.message === before?.message) return
    if (failure === undefined) log({ level: 'info', message: 'the watch of requests works again' })
    else log({ level: 'warning', message: 'the watch of requests failed', fields: errorFieldsOf(failure) })
  }

  #noteEvent(csr: string | undefined, failure: KcertError | undefined): void {
    const isNew = failure !== undefined && failure.code !== this.#eventFailure?.code
    this.#eventFailure = failure
    this.#counts[failure === undefined ? 'created' : 'failed']++
    if (!isNew) return
    const fields = { csr, ...errorFieldsOf(failure) }
    this.#ports.log({ level: 'warning', message: 'the Event could not be created', fields })
  }

  #tell(acted: Acted): void {
    const { log, context } = this.#ports
    const { name, outcome, object, error, evaluation } = acted
    const isApproved = outcome === 'approved'
    const reason = isApproved ? (evaluation?.verdict.policy ?? '') : refusalOf(acted)
    const detail = error === undefined ? detailOf(acted) : wordsOf(error)
    // The label of an approval is fixed, because the name of a rule may change with each policy.
    this.#count(outcome, isApproved ? 'policy' : reason)
    log({
      level: error === undefined ? 'info' : 'warning',
      message: outcome,
      fields: { csr: name, uid: object?.metadata.uid, reason, detail },
    })
    // Other objects are decided, gone or swapped. After KCERT_LOCKED, the next evaluation follows within seconds.
    const isLeftPending = outcome === 'skipped' || (outcome === 'failed' && error?.code !== 'KCERT_LOCKED')
    if (object === undefined || !(isApproved || isLeftPending)) return
    const told = isApproved
      ? { type: 'Normal' as const, reason: 'Approved', message: `policy ${reason}: ${detail}` }
      : { type: 'Warning' as const, reason: leftPending, message: detail }
    this.#events.add(eventOf(object, told, { now: context.clock(), instance: this.#instance }))
  }

  #tellScan(part: string, failure: KcertError | undefined): void {
    const { log } = this.#ports
    if (failure === undefined) log({ level: 'info', message: 'the scan works again', fields: { part } })
    else log({ level: 'warning', message: 'the scan failed', fields: { part, ...errorFieldsOf(failure) } })
  }

  #count(outcome: string, reason: string): void {
    const key = `${outcome} ${reason}`
    const { count } = this.#decisions.get(key) ?? { count: 0 }
    this.#decisions.set(key, { outcome, reason, count: count + 1 })
  }

  async #pollPolicy(): Promise<void> {
    const { log } = this.#ports
    if (this.#source === undefined) return
    const news = await this.#source.poll()
    const { failure } = this.#source
    if (news === 'replaced') {
      this.#approver?.evaluateAll()
      log({ level: 'info', message: 'the policy was read again', fields: { policy: this.#settings.approve } })
    } else if (news === 'failed' && failure !== undefined) {
      this.#counts.policy++
      log({
        level: 'error',
        message: 'the policy cannot be used, the earlier one stays in use',
        fields: errorFieldsOf(failure),
      })
    } else if (news === 'usable') log({ level: 'info', message: 'the policy can be used again' })
  }

  async #pollRights(): Promise<void> {
    const { cluster, log } = this.#ports
    const before = this.#missingText
    try {
      const { watch, leaseNamespace } = this.#settings
      const needed = neededRights({ approve: this.#source?.current, watch }, leaseNamespace)
      // Parts may need the same one.
      const rights = new Map(needed.flatMap((row) => row.rights.map((right) => [rightText(right), right])))
      this.#missing = await missingRights(cluster.objects, [...rights.values()])
      this.#missingText = this.#missing.map(rightText).join(', ')
    } catch (error) {
      if (!(error instanceof KcertError)) throw error
      this.#missing = undefined
      this.#missingText = `not checked: ${wordsOf(error)}`
    }
    if (this.#missingText === before) return
    const message = 'permissions of this user'
    if (this.#missingText === '') log({ level: 'info', message: `${message} are complete` })
    else log({ level: 'error', message: `${message} are missing`, fields: { missing: this.#missingText } })
  }

  /** Calls `act` at an interval, one call after the other. */
  #every(intervalMs: number, act: () => Promise<void>): NodeJS.Timeout {
    let isBusy = false
    return setInterval(async () => {
      if (isBusy) return
      isBusy = true
      try {
        await act()
      } finally {
        isBusy = false
      }
    }, intervalMs)
  }

  #health(): ServedText {
    const isStalled = this.#lease.idleMs > stalledMs
    const isStuck = (this.#approver?.busyMs ?? 0) > stalledMs
    return checks([
      ['lease', isStalled ? `no attempt to renew it ended for ${stalledMs / 1000} s` : undefined],
      ['evaluation', isStuck ? `one takes longer than ${stalledMs / 1000} s` : undefined],
    ])
  }

  #readiness(): ServedText {
    const { failure } = this.#lease
    return checks([
      ['lease', failure && wordsOf(failure)],
      ...(this.#source === undefined ? [] : [policyCheck(this.#source)]),
      ['permissions', this.#missingText === '' ? undefined : this.#missingText],
      ...(this.#source === undefined
        ? []
        : [['watch', this.#watchFailure && wordsOf(this.#watchFailure)] as const]),
    ])
  }

  #metrics(): string {
    const { lease, policy, watch, created, failed } = this.#counts
    const source = this.#source
    const { approve = '', watch: watching, leaseNamespace } = this.#settings
    const own = renderControllerMetrics({
      info: {
        approve: basename(approve),
        watch: watching !== undefined,
        watchSecrets: watching?.readSecrets === true,
        namespace: leaseNamespace,
      },
      isLeader: this.#lease.isLeader(),
      leaseFailures: lease,
      policy: source && {
        isUsable: source.failure === undefined,
        loadedSeconds: Math.floor(source.current.loadedAt.getTime() / 1000),
        failures: policy,
      },
      pending: this.#approver?.pendingBy() ?? new Map(),
      decisions: [...this.#decisions.values()],
      events: { created, failed },
      watchFailures: watch,
      missingRights: this.#missing,
      residentBytes: process.memoryUsage.rss(),
    })
    return own + (this.#watcher?.render() ?? '')
  }
}

/** Returns the checks as `/readyz?verbose` of Kubernetes components does, with the reason of each failure. */
function checks(results: readonly (readonly [name: string, failure: string | undefined])[]): ServedText {
  const lines = results.map(([name, failure]) =>
    failure === undefined ? `[+]${name} ok\n` : `[-]${name} failed: ${printable(failure)}\n`,
  )
  const isOk = results.every(([, failure]) => failure === undefined)
  return { status: isOk ? 200 : 503, type: 'text/plain; charset=utf-8', text: lines.join('') }
}

function policyCheck({ failure, current }: PolicySource) {
  const kept = `the policy of ${current.loadedAt.toISOString()} stays in use`
  return ['policy', failure && `${wordsOf(failure)}; ${kept}`] as const
}

function errorFieldsOf(error: KcertError): Readonly<Record<string, string>> {
  return { code: error.code, error: wordsOf(error) }
}
