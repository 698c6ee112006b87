import type { ServerResponse } from 'node:http'

// What goes wrong on the fake API server, and when.

export type FaultKind =
  /** 409, nothing done. */
  | 'conflict'
  /** 429 with Retry-After, nothing done. */
  | 'too-many-requests'
  /** 500, nothing done. */
  | 'internal'
  /** 500, but done. */
  | 'internal-after'
  /** 503, nothing done. */
  | 'unavailable'
  /** The connection is reset, nothing done. */
  | 'reset-before'
  /** The connection is reset, but it is done. */
  | 'reset-after'
  /** No answer, nothing done. */
  | 'hang'
  /** No answer, but done. */
  | 'hang-after'
  /** The answer ends in the middle; done. A watch ends after its next event. */
  | 'cut'
  /** 410 for a list that goes on, or a watch that begins at a resourceVersion. */
  | 'expired'
  /** What `answer` writes is the answer; done. Of a watch nothing else is sent. */
  | 'hostile'

/** What can happen to a call of any verb; `expired` is for lists and watches alone. */
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

/** Flags of a command that meets a fault: what never gets an answer is not waited for. All else has its time, on any machine. */
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
  /** At which of the calls that are meant, counted from now; 1 if not said. */
  readonly at?: number
  /** How many calls in a row; 1 if not said. */
  readonly times?: number
  readonly retryAfterSeconds?: number
  /** Of `hostile`: writes the answer in place of the server, which would have sent `result`; undefined for a watch. */
  readonly answer?: (response: ServerResponse, result: object | undefined) => void
}

export interface Called {
  readonly verb: string
  readonly resource: string
  readonly subresource?: string
  readonly name?: string
}

/** The faults that are still to come. */
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
