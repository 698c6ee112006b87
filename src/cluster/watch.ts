import { KcertError } from '../errors/kcert-error.ts'
import type { ApiClient, Pause } from './api-client.ts'
import { statusIn } from './failures.ts'
import type { ApiObject } from './malformed.ts'
import { isObject, MalformedAnswer, mostObjects, objectIn } from './malformed.ts'
import {
  checkedObject,
  metadataOf,
  type ObjectChange,
  type ObjectsApi,
  pagesOf,
  type Selection,
} from './objects.ts'
import { describeResource, pathOf, type Resource } from './resource.ts'
import { Unanswered } from './transport.ts'

// client-node's informers have stalled silently more than once (issues 596, 1496, 1933), so each connection of a watch is short.
// The server ends it after half a minute. If it is silent for some seconds longer, kcert closes it and connects again.
const stretchSeconds = 30
const idleTimeoutMs = (stretchSeconds + 10) * 1000
const pollMs = 2_000
const afterStretchMs = 500
// A restarting API server is down for a minute. Each attempt lasts about 15 s (api-client.ts), or a timeout.
const mostOutages = 8
// If a server or proxy ends each watch before its first event, kcert polls with lists for a minute instead.
const mostFruitless = 5
const fruitfulAfterMs = 5_000
const pollsInstead = 30
// An object has at most 1.5 MiB in etcd, unless an administrator raised the limit.
const longestLineBytes = 16 * 1024 * 1024

interface Position {
  /** uid → the object as last reported. */
  readonly known: Map<string, ApiObject>
  resourceVersion: string | undefined
}

interface Listing {
  readonly resource: Resource
  readonly selection: Selection
  readonly position: Position
  readonly signal: AbortSignal | undefined
}

interface Stretch extends Listing {
  readonly signal: AbortSignal
}

/** Returns the watch of ObjectsApi. For users who may list but not watch, it lists every two seconds. */
export function watchOf(client: ApiClient, pause: Pause): ObjectsApi['watch'] {
  return async function* watch(resource, selection, signal) {
    const position: Position = { known: new Map(), resourceVersion: undefined }
    let polls = 0
    let fruitless = 0
    let outages = 0
    let isBegun = false
    while (!signal.aborted) {
      try {
        // The first list has the timeout of any other call: without its response there is no state.
        const listing = { resource, selection, position, signal: isBegun ? signal : undefined }
        yield* await relist(client, pause, listing)
        isBegun = true
        outages = 0
      } catch (error) {
        if (isBegun && signal.aborted) return
        if (!isBegun || !isOutage(error) || ++outages > mostOutages) throw error
        await rest(pause, pollMs, signal)
        continue
      }
      if (polls > 0) {
        polls--
        await rest(pause, pollMs, signal)
      }
      // Each connection continues where the last one ended, until that resourceVersion expires.
      while (polls === 0 && !signal.aborted && position.resourceVersion !== undefined) {
        let isFruitful = false
        try {
          isFruitful = yield* stretch(client, { resource, selection, position, signal })
        } catch (error) {
          if (statusIn(error) === 403 || statusIn(error) === 405) polls = Number.POSITIVE_INFINITY
          else if (isOutage(error) || statusIn(error) === 410) position.resourceVersion = undefined
          else throw error
        }
        fruitless = isFruitful ? 0 : fruitless + 1
        if (fruitless >= mostFruitless) polls ||= pollsInstead
        await rest(pause, afterStretchMs, signal)
      }
    }
  }
}

function isOutage(error: unknown): boolean {
  return (
    error instanceof KcertError && error.code === 'KCERT_UNREACHABLE' && !(error instanceof MalformedAnswer)
  )
}

/** Lists again and returns the differences from the known objects. */
async function relist(client: ApiClient, pause: Pause, listing: Listing): Promise<ObjectChange[]> {
  const { position } = listing
  const { items, resourceVersion } = await listWhole(client, pause, listing)
  const found = new Map(items.map((item) => [uidOf(item), item]))
  const gone = [...position.known].filter(([uid]) => !found.has(uid))
  const changes: ObjectChange[] = gone.map(([, object]) => ({ type: 'DELETED', object }))
  for (const [uid, object] of found) {
    const before = position.known.get(uid)
    if (before === undefined) changes.push({ type: 'ADDED', object })
    else if (metadataOf(before).resourceVersion !== metadataOf(object).resourceVersion)
      changes.push({ type: 'MODIFIED', object })
  }
  position.known.clear()
  for (const [uid, object] of found) position.known.set(uid, object)
  position.resourceVersion = resourceVersion
  return changes
}

async function listWhole(client: ApiClient, pause: Pause, { resource, selection, signal }: Listing) {
  const items: ApiObject[] = []
  let resourceVersion: string | undefined
  for await (const page of pagesOf(client, pause, resource, selection, signal)) {
    if (page.isFirst) items.length = 0
    for (const item of page.items) items.push(item)
    resourceVersion = page.resourceVersion
  }
  return { items, resourceVersion }
}

/**
 * Yields changes until the connection ends. Returns whether it reported a change or lasted long enough. A bookmark alone does not
 * count.
 */
async function* stretch(
  client: ApiClient,
  { resource, selection, position, signal }: Stretch,
): AsyncGenerator<ObjectChange, boolean> {
  const watchdog = new AbortController()
  const either = AbortSignal.any([signal, watchdog.signal])
  let timer = setTimeout(() => watchdog.abort(), idleTimeoutMs)
  const purpose = `watch ${describeResource(resource)}`
  const began = performance.now()
  let isFruitful = false
  try {
    const chunks = await client.open(
      {
        method: 'GET',
        path: pathOf(resource),
        query: {
          watch: 'true',
          allowWatchBookmarks: 'true',
          timeoutSeconds: String(stretchSeconds),
          resourceVersion: position.resourceVersion,
          labelSelector: selection.labelSelector,
          fieldSelector: selection.fieldSelector,
        },
        isRepeatable: true,
        signal,
        purpose,
      },
      either,
    )
    for await (const line of linesOf(chunks, purpose)) {
      clearTimeout(timer)
      timer = setTimeout(() => watchdog.abort(), idleTimeoutMs)
      const change = taken(line, position, resource, purpose)
      if (position.resourceVersion === undefined) return isFruitful
      if (change === undefined) continue
      isFruitful = true
      yield change
    }
  } catch (error) {
    if (!either.aborted && !(error instanceof Unanswered)) throw error
  } finally {
    clearTimeout(timer)
    watchdog.abort()
  }
  return isFruitful || performance.now() - began >= fruitfulAfterMs
}

/** Applies an event of the server to the position. Returns the change to report. Throws MalformedAnswer. */
function taken(
  line: string,
  position: Position,
  resource: Resource,
  purpose: string,
): ObjectChange | undefined {
  const { type, object } = objectIn(line) ?? {}
  switch (type) {
    case 'ERROR':
      // Nearly always 410: the resourceVersion expired. Another list is right for other errors too.
      position.resourceVersion = undefined
      return undefined
    case 'BOOKMARK':
      if (!isObject(object)) break
      position.resourceVersion = resourceVersionOf(object) ?? position.resourceVersion
      return undefined
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED': {
      const changed = checkedObject(object, resource, purpose)
      position.resourceVersion = resourceVersionOf(changed) ?? position.resourceVersion
      if (type === 'DELETED') position.known.delete(uidOf(changed))
      else position.known.set(uidOf(changed), changed)
      if (position.known.size > mostObjects)
        throw new MalformedAnswer(purpose, `more than ${mostObjects} objects`)
      return { type, object: changed }
    }
    default:
      break
  }
  throw new MalformedAnswer(purpose, 'a line that is not a watch event')
}

function resourceVersionOf(object: ApiObject): string | undefined {
  const { resourceVersion } = metadataOf(object)
  return typeof resourceVersion === 'string' ? resourceVersion : undefined
}

async function* linesOf(chunks: AsyncIterable<Buffer>, purpose: string): AsyncGenerator<string> {
  let parts: Buffer[] = []
  let bytes = 0
  const take = (part: Buffer): void => {
    bytes += part.length
    if (bytes > longestLineBytes)
      throw new MalformedAnswer(purpose, `a line that is longer than ${longestLineBytes >> 20} MiB`)
    parts.push(part)
  }
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      take(chunk.subarray(start, end))
      const line = Buffer.concat(parts).toString('utf8')
      parts = []
      bytes = 0
      start = end + 1
      if (line.trim() !== '') yield line
    }
    if (start < chunk.length) take(chunk.subarray(start))
  }
}

function uidOf(object: ApiObject): string {
  const { uid, name, namespace } = metadataOf(object)
  return typeof uid === 'string' ? uid : `${String(namespace)}/${String(name)}`
}

async function rest(pause: Pause, milliseconds: number, signal: AbortSignal): Promise<void> {
  await pause(milliseconds, signal).catch(() => {})
}
