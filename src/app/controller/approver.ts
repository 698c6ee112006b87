import type { Pause } from '../../cluster/api-client.ts'
import { metadataOf, type ObjectChange } from '../../cluster/objects.ts'
import { restUntil } from '../../cluster/resting.ts'
import { type Acted, actOn, foreseen } from '../../csr/approval/acting.ts'
import type { Evaluation, Evaluator } from '../../csr/approval/evaluation.ts'
import { controllerName } from '../../csr/controller-events.ts'
import { isPending } from '../../csr/life.ts'
import { shapedRequest } from '../../csr/request-shape.ts'
import type { RequestObject, RequestsApi } from '../../csr/requests-api.ts'
import { KcertError, messageOf } from '../../errors/kcert-error.ts'
import { FairQueue, requesterOf } from './fair-queue.ts'
import { refusalOf } from './refusal.ts'

export interface ApproverPorts {
  readonly api: Pick<RequestsApi, 'get' | 'replaceApproval'>
  readonly watch: (
    signal: AbortSignal,
    tell: (failure: KcertError | undefined) => void,
  ) => AsyncIterable<ObjectChange>
  readonly evaluate: Evaluator
  /** Called right before each write. Throws a KcertError if the decision must not be written any more. */
  readonly confirm: (evaluation: Evaluation) => void
  /** Called when the result for an object differs from the last one. */
  readonly tell: (acted: Acted) => void
  /** Called with each failure of the watch, and with undefined when it works. */
  readonly tellWatch: (failure: KcertError | undefined) => void
  readonly nowMs: () => number
  readonly pause: Pause
  /** Returns a number from 0 to 1. */
  readonly draw: () => number
}

/** A pending object. The object itself is read again for each evaluation, so that memory depends only on their number. */
interface Pending {
  readonly name: string
  readonly requester: string
  /** When it is evaluated again. */
  dueMs: number
  tries: number
  isQueued: boolean
  /** The last result. */
  refusal: string
  told: string
}

// At most 20 evaluations a second, each with at most one write. client-go's default is 5 calls a second.
const evaluationMs = 50
const mostAtOnce = 8
// Facts change: a Node registers, RBAC is fixed. kube-controller-manager retries after 200 ms to 1000 s.
const firstRetryMs = 5_000
const longestRetryMs = 900_000
const sweepMs = 1_000
const outageMs = 5_000
const firstWatchRetryMs = 1_000
const longestWatchRetryMs = 60_000

/** Approves pending requests until its signal aborts. */
export class Approver {
  readonly #ports: ApproverPorts
  readonly #pending = new Map<string, Pending>()
  readonly #queue = new FairQueue()
  readonly #busy = new Map<string, { readonly done: Promise<void>; readonly sinceMs: number }>()
  #notBeforeMs = 0
  #wake = (): void => {}

  constructor(ports: ApproverPorts) {
    this.#ports = ports
  }

  /** Returns after the evaluations in progress have ended. Throws only for defects. */
  async run(signal: AbortSignal): Promise<void> {
    const ended = new AbortController()
    const either = AbortSignal.any([signal, ended.signal])
    try {
      await Promise.all([this.#follow(either), this.#dispatch(either)])
    } finally {
      ended.abort()
      await Promise.all([...this.#busy.values()].map(({ done }) => done))
    }
  }

  /** Evaluates every pending object again, for example with a new policy. */
  evaluateAll(): void {
    for (const item of this.#pending.values()) Object.assign(item, { dueMs: 0, tries: 0 })
  }

  /** Returns why objects are pending → how many. */
  pendingBy(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { refusal } of this.#pending.values()) counts.set(refusal, (counts.get(refusal) ?? 0) + 1)
    return counts
  }

  /** Milliseconds since the oldest evaluation in progress began. */
  get busyMs(): number {
    const [oldest] = this.#busy.values()
    return oldest === undefined ? 0 : this.#ports.nowMs() - oldest.sinceMs
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { watch, tellWatch, pause } = this.#ports
    for (let tries = 0; !signal.aborted; tries++) {
      try {
        for await (const change of watch(signal, tellWatch)) {
          tries = 0
          this.#note(change)
        }
      } catch (error) {
        if (!(error instanceof KcertError)) throw error
        if (!signal.aborted) tellWatch(error)
      }
      await restUntil(pause, Math.min(firstWatchRetryMs * 2 ** tries, longestWatchRetryMs), signal)
    }
  }

  #note({ type, object }: ObjectChange): void {
    const { uid, name } = metadataOf(object)
    if (typeof uid !== 'string' || typeof name !== 'string') return
    const request = type === 'DELETED' ? undefined : shapedRequest(object)
    if (request !== undefined && 'fault' in request) return
    if (request === undefined || !isPending(request)) this.#forget(uid)
    else if (!this.#pending.has(uid)) {
      const requester = requesterOf(request.spec.username)
      this.#pending.set(uid, {
        name,
        requester,
        dueMs: 0,
        tries: 0,
        isQueued: false,
        refusal: 'new',
        told: '',
      })
      this.#enqueue(uid)
    }
  }

  /** Objects that are created and deleted in a loop must not fill the queue, nor take turns in it. */
  #forget(uid: string): void {
    const item = this.#pending.get(uid)
    if (item?.isQueued) this.#queue.remove(item.requester, uid)
    this.#pending.delete(uid)
  }

  #enqueue(uid: string): void {
    const item = this.#pending.get(uid)
    if (item === undefined || item.isQueued || this.#busy.has(uid)) return
    item.isQueued = true
    this.#queue.add(item.requester, uid)
    this.#wake()
  }

  async #dispatch(signal: AbortSignal): Promise<void> {
    const { nowMs, pause } = this.#ports
    let sweptMs = nowMs()
    while (!signal.aborted) {
      if (nowMs() - sweptMs >= sweepMs) {
        sweptMs = nowMs()
        for (const [uid, { dueMs }] of this.#pending) if (dueMs <= sweptMs) this.#enqueue(uid)
      }
      const isResting = nowMs() < this.#notBeforeMs
      const uid = isResting || this.#busy.size >= mostAtOnce ? undefined : this.#queue.take()
      if (uid === undefined) {
        const woken = new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        await Promise.race([restUntil(pause, sweepMs, signal), woken])
        if (isResting) await restUntil(pause, sweepMs, signal)
        continue
      }
      const item = this.#pending.get(uid)
      if (item !== undefined) this.#begin(uid, item)
      await restUntil(pause, evaluationMs, signal)
    }
  }

  #begin(uid: string, item: Pending): void {
    item.isQueued = false
    const done = this.#decide(uid, item).finally(() => {
      this.#busy.delete(uid)
      this.#wake()
    })
    this.#busy.set(uid, { done, sinceMs: this.#ports.nowMs() })
  }

  /** Never throws: one request must not stop the approval of all others. */
  async #decide(uid: string, item: Pending): Promise<void> {
    const { nowMs, draw, tell } = this.#ports
    try {
      const object = await this.#ports.api.get(item.name)
      if (object?.metadata.uid !== uid || !isPending(object)) {
        this.#pending.delete(uid)
        return
      }
      const acted = await this.#actOn(object)
      if (acted.outcome !== 'skipped' && acted.outcome !== 'failed') this.#pending.delete(uid)
      item.refusal = refusalOf(acted)
      const told = `${acted.outcome} ${acted.reason}`
      if (told !== item.told) tell(acted)
      item.told = told
    } catch (error) {
      const known =
        error instanceof KcertError
          ? error
          : new KcertError('KCERT_DEFECT', messageOf(error), { cause: error })
      item.refusal = known.code
      if (known.code === 'KCERT_UNREACHABLE') this.#notBeforeMs = nowMs() + outageMs
      if (item.told !== known.code)
        tell({ name: item.name, outcome: 'failed', reason: known.message, error: known })
      item.told = known.code
    }
    // Each time a quarter more or less, so that requests that were created together are not evaluated together.
    const waitMs = Math.min(firstRetryMs * 2 ** item.tries++, longestRetryMs)
    item.dueMs = nowMs() + waitMs * (0.75 + draw() / 2)
  }

  async #actOn(object: RequestObject): Promise<Acted> {
    const { api, evaluate, confirm } = this.#ports
    const evaluation = await evaluate(object)
    if (evaluation.course !== 'act') return foreseen({ object, evaluation }, 'approve')
    const conditionFor = ({ verdict, reason }: Evaluation) => ({
      reason: 'ApprovedByPolicy',
      message: `${controllerName}: ${verdict.policy}: ${reason}`,
    })
    const options = { act: 'approve', evaluate, conditionFor, confirm } as const
    return actOn(api as RequestsApi, { object, evaluation }, options)
  }
}
