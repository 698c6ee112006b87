import type { ServerResponse } from 'node:http'

// Faults of the fake API server, and when they occur.

export type FaultKind =
  /** 409, without acting. */
  | 'conflict'
  /** 429 with Retry-After, without acting. */
  | 'too-many-requests'
  /** 500, without acting. */
  | 'internal'
  /** 500, after acting. */
  | 'internal-after'
  /** 503, without acting. */
  | 'unavailable'
  /** The connection is reset before acting. */
  | 'reset-before'
  /** The connection is reset after acting. */
  | 'reset-after'
  /** No response, without acting. */
  | 'hang'
  /** No response, after acting. */
  | 'hang-after'
  /** The response is cut in the middle, after acting. A watch ends after its next event. */
  | 'cut'
  /** 410 for the next page of a list, or for a watch that starts at a resourceVersion. */
  | 'expired'
  /** `answer` writes the response, after acting. Nothing else is sent for a watch. */
  | 'hostile'

/** Faults for calls of any verb. `expired` applies only to lists and watches. */
export const callFaults = [
  'conflict',
  'too-many-requests',
  'internal',
  'internal-after',
  'unavailable',
  'reset-before',
  'reset-after',
  'hang',
  'hang-after',
  'cut',
] as const satisfies readonly FaultKind[]

/**
 * Returns flags for a command that meets a fault. They end the wait for a response that never comes, and leave enough time for
 * all others on any machine.
 */
export function limitFor(kind: FaultKind): string[] {
  return kind.startsWith('hang') ? ['--request-timeout', '3s'] : []
}

export interface Fault {
  readonly kind: FaultKind
  /** Only calls of this verb: get, list, watch, create, update, patch, delete. */
  readonly verb?: string
  readonly resource?: string
  readonly subresource?: string
  readonly name?: string
  /** The number of the matching call at which the fault occurs, counted from now (default 1). */
  readonly at?: number
  /** The number of consecutive calls (default 1). */
  readonly times?: number
  readonly retryAfterSeconds?: number
  /** For `hostile`: writes the response instead of the server, which would have sent `result`; undefined for a watch. */
  readonly answer?: (response: ServerResponse, result: object | undefined) => void
}

export interface Called {
  readonly verb: string
  readonly resource: string
  readonly subresource?: string
  readonly name?: string
}

/** The pending faults. */
export class Faults {
  #waiting: { readonly fault: Fault; count: number }[] = []

  add(fault: Fault): void {
    this.#waiting.push({ fault, count: 0 })
  }

  clear(): void {
    this.#waiting = []
  }

  /** Returns the fault of this call. */
  next(call: Called): Fault | undefined {
    let hit: Fault | undefined
    for (const entry of this.#waiting) {
      if (!isMeant(entry.fault, call)) continue
      entry.count++
      const { at = 1, times = 1 } = entry.fault
      if (entry.count >= at && entry.count < at + times) hit ??= entry.fault
    }
    return hit
  }
}

function isMeant(fault: Fault, call: Called): boolean {
  return (['verb', 'resource', 'subresource', 'name'] as const).every(
    (field) => fault[field] === undefined || fault[field] === call[field],
  )
}
