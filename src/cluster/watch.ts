import { isObject } from '../errors/is-object.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { ApiClient, Pause } from './api-client.ts'
import { StatusError, statusIn } from './failures.ts'
import type { ApiObject } from './malformed.ts'
import { MalformedAnswer, mostObjects, objectIn } from './malformed.ts'
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
// A user who may not watch may get the permission later. The polls between two attempts take 1 min, 2 min, and so on up to 15 min.
const longestPollMs = 30_000
// An object has at most 1.5 MiB in etcd, unless an administrator raised the limit.
const longestLineBytes = 16 * 1024 * 1024

interface Position {
  /** Namespace and name → the trace of the object as last reported. */
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

/** Returns the watch of ObjectsApi. For users who may list but not watch, it lists every two seconds at first, then less often. */
export function watchOf(client: ApiClient, pause: Pause): ObjectsApi['watch'] {
  return async function* watch(resource, selection, signal, tell = () => {}) {
    const position: Position = { known: new Map(), resourceVersion: undefined }
    let polls = 0
    let fruitless = 0
    let refusals = 0
    let outages = 0
    let isBegun = false
    while (!signal.aborted) {
      try {
        // The first list has the timeout of any other call: without its response there is no state.
        const listing = { resource, selection, position, signal: isBegun ? signal : undefined }
        yield* await relist(client, pause, listing)
        isBegun = true
        outages = 0
        if (refusals === 0) tell(undefined)
      } catch (error) {
        if (isBegun && signal.aborted) return
        if (!isBegun || !isOutage(error) || ++outages > mostOutages) throw error
        tell(error)
        await rest(pause, pollMs, signal)
        continue
      }
      if (polls > 0) {
        polls--
        await rest(pause, Math.min(pollMs * 2 ** Math.max(refusals - 1, 0), longestPollMs), signal)
      }
      // Each connection continues where the last one ended, until that resourceVersion expires.
      while (polls === 0 && !signal.aborted && position.resourceVersion !== undefined) {
        let isFruitful = false
        try {
          isFruitful = yield* stretch(client, { resource, selection, position, signal })
          refusals = 0
          tell(undefined)
        } catch (error) {
          if (error instanceof StatusError && (error.status === 403 || error.status === 405)) {
            refusals++
            polls = pollsInstead
            tell(error)
          } else if (isOutage(error) || statusIn(error) === 410) position.resourceVersion = undefined
          else throw error
        }
        fruitless = isFruitful ? 0 : fruitless + 1
        if (fruitless >= mostFruitless) polls ||= pollsInstead
        await rest(pause, afterStretchMs, signal)
      }
    }
  }
}

function isOutage(error: unknown): error is KcertError {
  return (
    error instanceof KcertError && error.code === 'KCERT_UNREACHABLE' && !(error instanceof MalformedAnswer)
  )
}

/** Lists again and yields the differences from the known objects, page by page: a list of all objects may not fit in memory. */
async function* relist(
  client: ApiClient,
  pause: Pause,
  { resource, selection, position, signal }: Listing,
): AsyncGenerator<ObjectChange> {
  const { known } = position
  const found = new Set<string>()
  let listed: string | undefined
  for await (const page of pagesOf(client, pause, resource, selection, signal)) {
    if (page.isFirst) found.clear()
    for (const object of page.items) {
      const key = keyOf(object)
      const before = known.get(key)
      found.add(key)
      known.set(key, trace(object))
      const isOther = before !== undefined && metadataOf(before).uid !== metadataOf(object).uid
      if (isOther) yield { type: 'DELETED', object: before }
      if (before === undefined || isOther) yield { type: 'ADDED', object }
      else if (metadataOf(before).resourceVersion !== metadataOf(object).resourceVersion)
        yield { type: 'MODIFIED', object }
    }
    listed = page.resourceVersion
  }
  for (const [key, object] of known) {
    if (found.has(key)) continue
    known.delete(key)
    yield { type: 'DELETED', object }
  }
  position.resourceVersion = listed
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
      if (type === 'DELETED') position.known.delete(keyOf(changed))
      else position.known.set(keyOf(changed), trace(changed))
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

function keyOf(object: ApiObject): string {
  const { name, namespace } = metadataOf(object)
  return `${String(namespace)}/${String(name)}`
}

/** Returns what identifies an object and its version, a hundredth of its size. */
function trace(object: ApiObject): ApiObject {
  const { name, namespace, uid, resourceVersion } = metadataOf(object)
  return { metadata: { name, namespace, uid, resourceVersion } }
}

async function rest(pause: Pause, milliseconds: number, signal: AbortSignal): Promise<void> {
  await pause(milliseconds, signal).catch(() => {})
}
