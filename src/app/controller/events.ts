import { hash } from 'node:crypto'
import { statusIn } from '../../cluster/failures.ts'
import type { ObjectsApi } from '../../cluster/objects.ts'
import { controllerName, eventNamespace } from '../../csr/controller-events.ts'
import type { RequestObject } from '../../csr/requests-api.ts'
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

/**
 * Creates an Event on a request. Its name depends on the object and the text, so that the next leader does not repeat the Events of
 * the last one. Errors are those of `ObjectsApi.create`.
 */
export async function createEvent(
  objects: Pick<ObjectsApi, 'create'>,
  object: RequestObject,
  { type, reason, message }: Told,
  { now, instance }: { readonly now: Date; readonly instance: string },
): Promise<void> {
  const { name, uid, resourceVersion } = object.metadata
  const text = cut(printable(message))
  const time = rfc3339(now)
  const digest = hash('sha256', JSON.stringify([uid, reason, text])).slice(0, 16)
  try {
    await objects.create(events, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${controllerName}.${digest}`, namespace: eventNamespace },
      involvedObject: {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        ...{ name, uid, resourceVersion },
      },
      ...{ type, reason, message: text, count: 1, firstTimestamp: time, lastTimestamp: time },
      source: { component: controllerName },
      ...{ reportingComponent: controllerName, reportingInstance: instance },
    })
  } catch (error) {
    if (statusIn(error) !== 409) throw error
  }
}

function cut(text: string): string {
  if (Buffer.byteLength(text) <= mostNoteBytes) return text
  const start = Buffer.from(text).subarray(0, mostNoteBytes - 4)
  // A character that is cut in the middle decodes as U+FFFD.
  return `${start.toString('utf8').replace(/\ufffd+$/, '')}…`
}
