import { randomBytes } from 'node:crypto'
import type { Pause } from '../../cluster/api-client.ts'
import { statusIn } from '../../cluster/failures.ts'
import type { ApiObject } from '../../cluster/malformed.ts'
import type { ObjectsApi } from '../../cluster/objects.ts'
import { controllerName, eventNamespace } from '../../csr/controller-events.ts'
import type { RequestObject } from '../../csr/requests-api.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { printable } from '../../output/terminal.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'

const events = { group: '', version: 'v1', resource: 'events', namespace: eventNamespace } as const
// The API server rejects longer messages of Events.
const mostNoteBytes = 1024

export interface Told {
  readonly type: 'Normal' | 'Warning'
  /** In CamelCase. */
  readonly reason: string
  readonly message: string
}

/** Returns an Event on a request. No other client can create it first, because its name is random. */
export function eventOf(
  object: RequestObject,
  { type, reason, message }: Told,
  { now, instance }: { readonly now: Date; readonly instance: string },
): RequestEvent {
  const { name, uid, resourceVersion } = object.metadata
  const text = cut(printable(message))
  const time = rfc3339(now)
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${controllerName}.${randomBytes(8).toString('hex')}`, namespace: eventNamespace },
    involvedObject: {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      ...{ name, uid, resourceVersion },
    },
    ...{ type, reason, message: text, count: 1, firstTimestamp: time, lastTimestamp: time },
    source: { component: controllerName },
    ...{ reportingComponent: controllerName, reportingInstance: instance },
  }
}

interface RequestEvent extends ApiObject {
  readonly involvedObject: ApiObject & { readonly name: string | undefined; readonly uid: string | undefined }
}

interface EventPorts {
  readonly objects: Pick<ObjectsApi, 'create'>
  readonly pause: Pause
  /** Called after each attempt, with its failure. */
  readonly tell: (event: RequestEvent, failure: KcertError | undefined) => void
}

// With 1 KB each, 2 MB. Above it, the oldest one is dropped.
const mostWaiting = 1_000
const firstRetryMs = 1_000
const longestRetryMs = 60_000

/** Creates Events one after the other, so that a slow API server does not delay decisions. Failed ones are tried again. */
export class EventQueue {
  readonly #ports: EventPorts
  /** UID of the request → its newest Event. */
  readonly #waiting = new Map<string | undefined, RequestEvent>()
  #wake = (): void => {}

  constructor(ports: EventPorts) {
    this.#ports = ports
  }

  add(event: RequestEvent): void {
    const { uid } = event.involvedObject
    this.#waiting.delete(uid)
    this.#waiting.set(uid, event)
    const [oldest] = this.#waiting.values()
    if (this.#waiting.size > mostWaiting && oldest !== undefined) {
      this.#waiting.delete(oldest.involvedObject.uid)
      const dropped = new KcertError('KCERT_UNREACHABLE', 'too many Events wait; this one is dropped')
      this.#ports.tell(oldest, dropped)
    }
    this.#wake()
  }

  /** Returns after `ended` aborts, once no Event waits or one cannot be created. */
  async run(ended: AbortSignal): Promise<void> {
    ended.addEventListener('abort', () => this.#wake())
    for (let tries = 0; ; ) {
      const [event] = this.#waiting.values()
      if (event === undefined) {
        if (ended.aborted) return
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        continue
      }
      const failure = await this.#create(event)
      this.#ports.tell(event, failure)
      const { uid } = event.involvedObject
      if (this.#waiting.get(uid) === event) this.#waiting.delete(uid)
      if (failure === undefined) {
        tries = 0
        continue
      }
      // An invalid one would fail again. Others must not wait behind this one.
      if (failure.code !== 'KCERT_API_INVALID' && !this.#waiting.has(uid)) this.#waiting.set(uid, event)
      if (ended.aborted) return
      await this.#ports.pause(Math.min(firstRetryMs * 2 ** tries++, longestRetryMs), ended).catch(() => {})
    }
  }

  async #create(event: RequestEvent): Promise<KcertError | undefined> {
    try {
      await this.#ports.objects.create(events, event)
    } catch (error) {
      if (!(error instanceof KcertError)) throw error
      // An earlier attempt created it, and its answer was lost.
      if (statusIn(error) !== 409) return error
    }
    return undefined
  }
}

function cut(text: string): string {
  if (Buffer.byteLength(text) <= mostNoteBytes) return text
  const start = Buffer.from(text).subarray(0, mostNoteBytes - 4)
  // A character that is cut in the middle decodes as U+FFFD.
  return `${start.toString('utf8').replace(/\ufffd+$/, '')}…`
}
