import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import {
  currentCertificate,
  type Effect,
  type ManagerEvent,
  type ManagerState,
  managerState,
  step,
  wakesAtMs,
} from './manager.ts'
import { heldCertificateOf } from './pair.ts'
import type { StoredPair } from './pair-store.ts'
import { type Draw, restMs } from './schedule.ts'
import type { Template } from './template.ts'

/** A submitted request. */
export interface SentRequest {
  /** The name of the object. */
  readonly name: string
  readonly keyPem: string
  /** Resolves with the certificate in PEM, followed by its issuers. Throws KcertError when none will be issued. */
  issued(signal: AbortSignal): Promise<Uint8Array | string>
}

export interface ManagerPorts {
  readonly clock: () => Date
  /** Calls `wake` once after this time, and returns a function that cancels it. */
  readonly after: (ms: number, wake: () => void) => () => void
  readonly draw: Draw
  /** Creates a new key and submits a request for it. Throws KcertError. */
  request(template: Template, signal: AbortSignal): Promise<SentRequest>
  readonly store: { update(chainPem: Uint8Array | string, keyPem: string, now: Date): StoredPair }
  /** Events for logs, metrics and hooks. */
  tell(news: ManagerNews): void
}

export type ManagerNews =
  | { readonly kind: 'waiting'; readonly untilMs: number }
  | { readonly kind: 'requested'; readonly name: string }
  | { readonly kind: 'renewed'; readonly stored: StoredPair; readonly usedSeconds?: number }
  | { readonly kind: 'failed'; readonly error: unknown; readonly againAtMs: number | undefined }

export interface ManagerOptions {
  /**
   * The template, or a function that returns the current one; it is called each second, so it must return at once. Undefined:
   * unknown yet.
   */
  readonly template: Template | (() => Template | undefined)
  readonly present: StoredPair | undefined
  readonly forceRenewal?: boolean
}

/** Timers are set again at this interval, so that a machine renews in time after a sleep or a clock change. */
const longestSleepMs = 60_000

/** Manages one certificate like client-go's certificate manager, behind ports. */
export class CertificateManager {
  private readonly ports: ManagerPorts
  private readonly template: () => Template | undefined
  private readonly isDynamic: boolean
  private state: ManagerState
  private stored: StoredPair | undefined
  private sent: SentRequest | undefined
  private chain: Uint8Array | string = ''
  private failure: unknown
  private underWay = new AbortController()
  private working: Promise<unknown> = Promise.resolve()
  private endSleep: () => void = () => {}
  private endPolling: () => void = () => {}
  private reportedDeadlineMs: number | undefined

  constructor(ports: ManagerPorts, { template, present, forceRenewal = false }: ManagerOptions) {
    this.ports = ports
    this.isDynamic = typeof template === 'function'
    this.template = typeof template === 'function' ? template : () => template
    this.stored = present
    const held = present && heldCertificateOf(present.pair)
    this.state = managerState(held, ports.clock().getTime(), { forceRenewal })
  }

  /** Returns the pair to use; undefined when there is none, or it has expired. */
  current(): StoredPair | undefined {
    const held = currentCertificate(this.state, this.ports.clock().getTime())
    return held === undefined ? undefined : this.stored
  }

  /** True when the last response shows that the API server works. */
  serverHealthy(): boolean {
    return this.state.isServerHealthy
  }

  /** Returns when the certificate is renewed; undefined during a renewal, and when the manager is stopped. */
  nextRenewalMs(): number | undefined {
    const { activity } = this.state
    return activity.at === 'deadline' ? activity.untilMs : undefined
  }

  start(): void {
    this.happen({ kind: 'start' })
    if (this.isDynamic) this.poll()
  }

  /** Stops the manager; resolves when nothing is running any more. It can be started again. */
  async stop(): Promise<void> {
    this.endPolling()
    this.happen({ kind: 'stop' })
    await this.working
  }

  /** Renews now, regardless of the certificate. */
  force(): void {
    this.happen({ kind: 'force' })
  }

  private poll(): void {
    this.endPolling = this.ports.after(restMs, () => {
      this.happen({ kind: 'template' })
      this.poll()
    })
  }

  private happen(event: ManagerEvent): void {
    const nowMs = this.ports.clock().getTime()
    const { state, effects } = step(this.state, event, {
      nowMs,
      template: this.template(),
      draw: this.ports.draw,
    })
    this.state = state
    for (const effect of effects) this.act(effect)
    this.endSleep()
    const wakes = wakesAtMs(this.state)
    this.endSleep =
      wakes === undefined
        ? () => {}
        : this.ports.after(Math.min(Math.max(wakes - nowMs, 0), longestSleepMs), () =>
            this.happen({ kind: 'time' }),
          )
    this.reportDeadline()
  }

  private act(effect: Effect): void {
    switch (effect.do) {
      case 'request':
        this.underWay = new AbortController()
        this.working = this.request(effect.attempt, effect.template, this.underWay.signal)
        return
      case 'wait':
        if (this.sent !== undefined) this.working = this.wait(effect.attempt, this.sent, this.underWay.signal)
        return
      case 'cancel':
        this.failure = givenUp(this.sent?.name)
        this.underWay.abort()
        return
      case 'store':
        if (this.sent !== undefined) this.store(effect.attempt, this.sent)
        return
      case 'tell-renewed':
        if (this.stored !== undefined)
          this.ports.tell({
            kind: 'renewed',
            stored: this.stored,
            ...given({ usedSeconds: effect.usedSeconds }),
          })
        return
      case 'tell-failed':
        this.ports.tell({ kind: 'failed', error: this.failure, againAtMs: wakesAtMs(this.state) })
    }
  }

  private async request(attempt: number, template: Template, signal: AbortSignal): Promise<void> {
    this.sent = undefined
    try {
      const sent = await this.ports.request(template, signal)
      if (signal.aborted) return
      this.sent = sent
      this.ports.tell({ kind: 'requested', name: sent.name })
    } catch (error) {
      if (signal.aborted) return
      this.failure = error
      this.happen({ kind: 'not-requested', attempt, isServerHealthy: showsHealth(error) })
      return
    }
    this.happen({ kind: 'requested', attempt })
  }

  private async wait(attempt: number, sent: SentRequest, signal: AbortSignal): Promise<void> {
    try {
      this.chain = await sent.issued(signal)
    } catch (error) {
      if (signal.aborted) return
      this.failure = error
      this.happen({ kind: 'not-issued', attempt })
      return
    }
    this.happen({ kind: 'issued', attempt })
  }

  private store(attempt: number, { keyPem }: SentRequest): void {
    try {
      this.stored = this.ports.store.update(this.chain, keyPem, this.ports.clock())
    } catch (error) {
      this.failure = error
      this.happen({ kind: 'not-stored', attempt })
      return
    }
    this.happen({ kind: 'stored', attempt, certificate: heldCertificateOf(this.stored.pair) })
  }

  private reportDeadline(): void {
    const untilMs = this.nextRenewalMs()
    if (untilMs !== undefined && untilMs !== this.reportedDeadlineMs)
      this.ports.tell({ kind: 'waiting', untilMs })
    this.reportedDeadlineMs = untilMs
  }
}

/** Errors of a working API server: it does not authenticate or authorize the client, or does not serve the kind. */
const healthy: ReadonlySet<string> = new Set([
  'KCERT_API_UNAUTHORIZED',
  'KCERT_API_CLIENT_EXPIRED',
  'KCERT_API_FORBIDDEN',
  'KCERT_API_NOT_FOUND',
])

function showsHealth(error: unknown): boolean {
  return error instanceof KcertError && healthy.has(error.code)
}

function givenUp(name: string | undefined): KcertError {
  return new KcertError('KCERT_CSR_WAIT_OVER', `stopped waiting for the request ${name ?? ''}`, {
    why: 'no certificate was issued within 15 min, or the requested subject or SANs changed',
    ...(name === undefined ? {} : { next: commandLine`kcert csr explain ${name}` }),
  })
}
