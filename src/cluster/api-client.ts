import { readWhole } from '../system/pipes.ts'
import type { RandomBytes } from '../system/random.ts'
import type { Access, Credentials } from './credentials.ts'
import type { Failures, Refusal } from './failures.ts'
import type { ApiObject } from './malformed.ts'
import { type Answer, type StreamedAnswer, type Transport, Unanswered } from './transport.ts'

export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Without the server's own path and the query. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: object
  readonly contentType?: string
  /**
   * True when the call does no harm if it is done twice: reading, asking, and writing under a resourceVersion, which at worst
   * conflicts with itself. Others are repeated only when they cannot have reached the server.
   */
  readonly isRepeatable: boolean
  /** Ends the call, and the waiting for its next try. */
  readonly signal?: AbortSignal | undefined
  /** "read certificatesigningrequests "web"", for messages. */
  readonly purpose: string
}

/** Waits; tests do not. */
export type Pause = (milliseconds: number, signal?: AbortSignal) => Promise<void>

// With the pauses below a call is tried for some 15 s; a server that says itself when to come again may take longer.
const mostAttempts = 8
const mostTimeouts = 3
const mostRefusals = 4
const firstPauseMs = 100
const longestPauseMs = 5_000
const longestRetryAfterMs = 60_000
const mostRefusalBytes = 1024 * 1024

const gone = new Set(['ENOTFOUND', 'ERR_INVALID_URL'])
const cut = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'])
const refused = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EAI_AGAIN'])

interface Surroundings {
  readonly transport: Transport
  readonly credentials: Credentials
  readonly failures: Failures
  readonly random: RandomBytes
  readonly pause: Pause
}

/** Calls to one API server: authentication, repetition of what may be repeated, and errors in kcert's words. */
export class ApiClient {
  readonly #to: Surroundings

  constructor(to: Surroundings) {
    this.#to = to
  }

  /** Returns the answer's JSON. Throws StatusError for what the server refuses, and KcertErrors for the rest. */
  async call(call: ApiCall): Promise<ApiObject> {
    const { body } = await this.#attempts(call, async (access) => {
      const answer = await this.#to.transport.exchange(exchangeOf(call), access, call.signal)
      return { answer, refusal: () => answer }
    })
    return this.#to.failures.parse(body, call.purpose)
  }

  /** Returns the answer as it comes in, until `signal` ends it. */
  async open(call: ApiCall, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    const { chunks } = await this.#attempts(call, async (access) => {
      const answer = await this.#to.transport.stream(exchangeOf(call), access, signal)
      return { answer, refusal: () => gathered(answer) }
    })
    return chunks
  }

  async #attempts<A extends Answer | StreamedAnswer>(
    call: ApiCall,
    attempt: (access: Access) => Promise<{ answer: A; refusal: () => Answer | Promise<Answer> }>,
  ): Promise<A> {
    let mayHaveHappened = false
    let renewed = false
    const counts = { timeouts: 0, refusals: 0 }
    for (let count = 1; ; count++) {
      const access = await this.#to.credentials.access()
      const outcome = await attempt(access).catch(onUnanswered)
      if (outcome instanceof Unanswered) {
        if (outcome.code === 'CERT_SIGNATURE_FAILURE' && count < mostAttempts) {
          if (this.#to.credentials.reorder(access)) continue
        }
        if (!call.isRepeatable && outcome.mayHaveArrived) mayHaveHappened = true
        const isLast = mayHaveHappened || count >= mostAttempts || !isWorthAnother(outcome, counts)
        if (isLast || !(await this.#rest(this.#pauseMs(count), call.signal))) {
          throw await this.#to.failures.unreachable(outcome, { call, access, mayHaveHappened })
        }
        continue
      }
      const { answer, refusal } = outcome
      if (answer.status >= 200 && answer.status < 300) return answer
      const refused = this.#to.failures.refusal(await refusal(), { call, access, isSecond: count > 1 })
      if (answer.status === 401 && !renewed && this.#to.credentials.renew(access)) {
        renewed = true
        continue
      }
      const isLast = count >= mostAttempts || !mayComeAgain(refused, call)
      if (isLast || !(await this.#rest(refused.retryAfterMs ?? this.#pauseMs(count), call.signal)))
        throw refused.error
    }
  }

  /** Waits; false when the signal was given meanwhile. */
  async #rest(milliseconds: number, signal: AbortSignal | undefined): Promise<boolean> {
    await this.#to.pause(milliseconds, signal).catch((error: unknown) => {
      if (!signal?.aborted) throw error
    })
    return !signal?.aborted
  }

  /** Doubles, and is spread by half, so that many who were turned away together do not come back together. */
  #pauseMs(count: number): number {
    const pause = Math.min(firstPauseMs * 2 ** (count - 1), longestPauseMs)
    return pause * (0.5 + (this.#to.random(1)[0] ?? 0) / 256)
  }
}

function onUnanswered(error: unknown): Unanswered {
  if (error instanceof Unanswered) return error
  throw error
}

function isWorthAnother({ code }: Unanswered, counts: { timeouts: number; refusals: number }): boolean {
  if (code === undefined || code === 'ABORT_ERR' || gone.has(code)) return false
  if (code === 'ETIMEDOUT') return ++counts.timeouts < mostTimeouts
  if (refused.has(code)) return ++counts.refusals < mostRefusals
  return cut.has(code) || code.startsWith('HPE_')
}

/** 429 comes before anything was done; what else is temporary may come after. */
function mayComeAgain({ status, retryAfterMs }: Refusal, { isRepeatable }: ApiCall): boolean {
  if (retryAfterMs !== undefined && retryAfterMs > longestRetryAfterMs) return false
  if (status === 429) return true
  return isRepeatable && [500, 502, 503, 504].includes(status)
}

/** Returns the path of a call with the parameters that have a value. */
export function pathWithQuery({ path, query = {} }: Pick<ApiCall, 'path' | 'query'>): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, value)
  return parameters.size === 0 ? path : `${path}?${parameters}`
}

function exchangeOf(call: ApiCall) {
  const { method, body, contentType = 'application/json' } = call
  return {
    method,
    path: pathWithQuery(call),
    headers: {
      Accept: 'application/json',
      'User-Agent': 'kcert',
      ...(body !== undefined && { 'Content-Type': contentType }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }
}

async function gathered({ status, retryAfter, chunks }: StreamedAnswer): Promise<Answer> {
  // Of a refusal that has no end, or is cut, the status counts.
  const body = await readWhole(chunks, mostRefusalBytes).catch(() => undefined)
  return { status, retryAfter, body: body ?? Buffer.alloc(0) }
}
