import type WebSocket from 'ws'
import { readWhole } from '../system/pipes.ts'
import type { RandomBytes } from '../system/random.ts'
import type { Access, Credentials } from './credentials.ts'
import type { Failures, Refusal } from './failures.ts'
import { type ApiObject, MalformedAnswer } from './malformed.ts'
import { type Answer, type StreamedAnswer, type Transport, Unanswered } from './transport.ts'
import type { Upgrade } from './web-socket.ts'

export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The path without the base path of the server and without the query. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body?: object
  readonly contentType?: string
  /** Default: application/json. A server answers 406 for a type that it does not produce. */
  readonly accept?: string
  /**
   * True when repeating the call is harmless: reads, reviews, and writes with a resourceVersion, which at worst conflict with
   * themselves. Other calls are retried only when they cannot have reached the server.
   */
  readonly isRepeatable: boolean
  /** Called right before each attempt. Throws if the call must not be sent any more. */
  readonly confirm?: (() => void) | undefined
  /** The limit of the response body (default 256 MiB). */
  readonly mostBytes?: number | undefined
  /** Aborts the call and the pause before its next attempt. */
  readonly signal?: AbortSignal | undefined
  /** For messages, for example `read certificatesigningrequests "web"`. */
  readonly purpose: string
}

/** Waits for a time. Tests do not wait. */
export type Pause = (milliseconds: number, signal?: AbortSignal) => Promise<void>

// With the pauses below, a call is retried for about 15 s. A server that sends Retry-After can extend this.
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
  readonly mostPageBytes?: number | undefined
  /** Receives the number of bytes of each response. */
  readonly onBytes?: ((count: number) => void) | undefined
  /** Aborts every call. */
  readonly signal?: AbortSignal | undefined
}

/** Calls to one API server: authentication, retries of repeatable calls, and errors as KcertErrors. */
export class ApiClient {
  readonly #to: Surroundings
  /** The limit of a page of a list; undefined for the default. */
  readonly mostPageBytes: number | undefined

  constructor(to: Surroundings) {
    this.#to = to
    this.mostPageBytes = to.mostPageBytes
  }

  /** Returns the JSON of the response. Throws StatusError when the server refuses the call, and KcertErrors otherwise. */
  async call(call: ApiCall): Promise<ApiObject> {
    const { body } = await this.#attempts(call, async (access, signal) => {
      const answer = await this.#to.transport.exchange(exchangeOf(call), access, signal)
      this.#to.onBytes?.(answer.body.length)
      return { answer, refusal: () => answer }
    })
    return this.#to.failures.parse(body, call.purpose)
  }

  /** Returns the response body as a stream, until `signal` aborts it. */
  async open(call: ApiCall, signal: AbortSignal): Promise<AsyncIterable<Buffer>> {
    const { chunks } = await this.#attempts(call, async (access) => {
      const answer = await this.#to.transport.stream(exchangeOf(call), access, signal)
      return { answer, refusal: () => readAnswer(answer) }
    })
    return chunks
  }

  /** Returns an open WebSocket. `protocols`: the accepted ones, the preferred one first. */
  async webSocket(call: ApiCall, protocols: readonly string[]): Promise<WebSocket> {
    // Few commands need it.
    const { requestWebSocket } = await import('./web-socket.ts')
    const upgrade = await this.#attempts(call, async (access) => {
      const answer = await requestWebSocket(this.#to.transport, pathWithQuery(call), protocols, access)
      return { answer, refusal: () => refusedUpgrade(answer) }
    })
    if ('socket' in upgrade) return upgrade.socket
    throw new MalformedAnswer(call.purpose, `HTTP status ${upgrade.status} instead of a WebSocket`)
  }

  async #attempts<A extends { readonly status: number }>(
    call: ApiCall,
    attempt: (
      access: Access,
      signal: AbortSignal | undefined,
    ) => Promise<{ answer: A; refusal: () => Answer | Promise<Answer> }>,
  ): Promise<A> {
    let mayHaveHappened = false
    let renewed = false
    const signal = signalOf(call.signal, this.#to.signal)
    const counts = { timeouts: 0, refusals: 0 }
    for (let count = 1; ; count++) {
      const access = await this.#to.credentials.access()
      call.confirm?.()
      const outcome = await attempt(access, signal).catch(onUnanswered)
      if (outcome instanceof Unanswered) {
        if (outcome.code === 'CERT_SIGNATURE_FAILURE' && count < mostAttempts) {
          if (this.#to.credentials.reorder(access)) continue
        }
        if (!call.isRepeatable && outcome.mayHaveArrived) mayHaveHappened = true
        const isLast = mayHaveHappened || count >= mostAttempts || !isWorthAnother(outcome, counts)
        if (isLast || !(await this.#rest(this.#pauseMs(count), signal))) {
          throw await this.#to.failures.unreachable(outcome, { call, access, mayHaveHappened })
        }
        continue
      }
      const { answer, refusal } = outcome
      if (answer.status === 101 || (answer.status >= 200 && answer.status < 300)) return answer
      const refused = this.#to.failures.refusal(await refusal(), { call, access, isSecond: count > 1 })
      if (answer.status === 401 && !renewed && this.#to.credentials.renew(access)) {
        renewed = true
        continue
      }
      const isLast = count >= mostAttempts || !mayComeAgain(refused, call)
      if (isLast || !(await this.#rest(refused.retryAfterMs ?? this.#pauseMs(count), signal)))
        throw refused.error
    }
  }

  /** Waits. Returns false when the signal aborted meanwhile. */
  async #rest(milliseconds: number, signal: AbortSignal | undefined): Promise<boolean> {
    await this.#to.pause(milliseconds, signal).catch((error: unknown) => {
      if (!signal?.aborted) throw error
    })
    return !signal?.aborted
  }

  /** The pause doubles each time, with 50 % jitter, so that clients rejected together do not retry together. */
  #pauseMs(count: number): number {
    const pause = Math.min(firstPauseMs * 2 ** (count - 1), longestPauseMs)
    return pause * (0.5 + (this.#to.random(1)[0] ?? 0) / 256)
  }
}

function signalOf(own: AbortSignal | undefined, all: AbortSignal | undefined): AbortSignal | undefined {
  return own !== undefined && all !== undefined ? AbortSignal.any([own, all]) : (own ?? all)
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

/** A 429 is sent before the server acts. Other temporary errors can follow an action. */
function mayComeAgain({ status, retryAfterMs }: Refusal, { isRepeatable }: ApiCall): boolean {
  if (retryAfterMs !== undefined && retryAfterMs > longestRetryAfterMs) return false
  if (status === 429) return true
  return isRepeatable && [500, 502, 503, 504].includes(status)
}

/** Returns the path of a call with the query parameters that are defined. */
export function pathWithQuery({ path, query = {} }: Pick<ApiCall, 'path' | 'query'>): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    for (const one of [value ?? []].flat()) parameters.append(name, one)
  return parameters.size === 0 ? path : `${path}?${parameters}`
}

function exchangeOf(call: ApiCall) {
  const { method, body, contentType = 'application/json', accept = 'application/json' } = call
  return {
    method,
    path: pathWithQuery(call),
    headers: {
      Accept: accept,
      'User-Agent': 'kcert',
      ...(body !== undefined && { 'Content-Type': contentType }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(call.mostBytes !== undefined && { mostBytes: call.mostBytes }),
  }
}

async function readAnswer({ status, retryAfter, chunks }: StreamedAnswer): Promise<Answer> {
  // If the body of a refusal is endless or cut, the HTTP status decides.
  const body = await readWhole(chunks, mostRefusalBytes).catch(() => undefined)
  return { status, retryAfter, body: body ?? Buffer.alloc(0) }
}

async function refusedUpgrade(upgrade: Upgrade): Promise<Answer> {
  if ('socket' in upgrade) throw new TypeError('the WebSocket is open')
  const { status, response } = upgrade
  return readAnswer({ status, retryAfter: response.headers['retry-after'], chunks: response })
}
