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

/** A request that was sent. */
export interface SentRequest {
  /** Of the object. */
  readonly name: string
  readonly keyPem: string
  /** Comes back with the certificate in PEM, those of its issuers behind it. Throws KcertError when there will be none. */
  issued(signal: AbortSignal): Promise<Uint8Array | string>
}

/** What the manager needs of the world. */
export interface ManagerPorts {
  readonly clock: () => Date
  /** Calls `wake` once, after so long, and returns what takes that back. */
  readonly after: (ms: number, wake: () => void) => () => void
  readonly draw: Draw
  /** Makes a new key and sends a request for it. Throws KcertError. */
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
  /** What to ask for; of a function, what it returns now: asked each second, so it returns at once. Undefined: not known yet. */
  readonly template: Template | (() => Template | undefined)
  /** What the store holds. */
  readonly present: StoredPair | undefined
  readonly forceRenewal?: boolean
}

/** Timers are set again this often, so that a machine that slept, or whose clock was set, renews when it is time. */
const longestSleepMs = 60_000

/** Keeps one certificate: what client-go's certificate manager does, behind ports. */
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

  /** Returns the pair to use; undefined while there is none, and once it has expired. */
  current(): StoredPair | undefined {
    const held = currentCertificate(this.state, this.ports.clock().getTime())
    return held === undefined ? undefined : this.stored
  }

  /** True when the last answer of the API server was one of an API server. */
  serverHealthy(): boolean {
    return this.state.isServerHealthy
  }

  /** Returns when the certificate is renewed; undefined while it is being renewed, and while nothing runs. */
  nextRenewalMs(): number | undefined {
    const { doing } = this.state
    return doing.at === 'deadline' ? doing.untilMs : undefined
  }

  start(): void {
    this.happen({ kind: 'start' })
    if (this.isDynamic) this.poll()
  }

  /** Ends it; comes back when nothing is under way any more. It can be started again. */
  async stop(): Promise<void> {
    this.endPolling()
    this.happen({ kind: 'stop' })
    await this.working
  }

  /** Renews now, whatever the certificate says. */
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

/** Answers that an API server gives when all is well with it: it does not know us, does not let us, or has no such kind. */
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
  return new KcertError('KCERT_CSR_WAIT_OVER', `the request ${name ?? ''} is no longer waited for`, {
    why: 'there was no certificate within 15 min, or the requested subject or SANs changed',
    ...(name === undefined ? {} : { next: commandLine`kcert csr explain ${name}` }),
  })
}
