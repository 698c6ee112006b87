import { KcertError } from '../errors/kcert-error.ts'
import type { ApiClient, ApiObject, Pause } from './api-client.ts'
import { StatusError } from './failures.ts'
import { metadataOf, type ObjectChange, type ObjectsApi, readPage, type Selection } from './objects.ts'
import { describeResource, pathOf, type Resource } from './resource.ts'
import { Unanswered } from './transport.ts'

// client-node's informers have stalled silently more than once (issues 596, 1496, 1933), so each stretch of a watch is short:
// the server ends it after half a minute, and what is still silent some seconds later is cut and begun again.
const stretchSeconds = 30
const silenceMs = (stretchSeconds + 10) * 1000
const pollMs = 2_000
const afterCutMs = 500
// An API server that is started anew is away for a minute; each try lasts some 15 s (api-client.ts), or a timeout.
const mostOutages = 8

interface Position {
  /** uid → object, as last told. */
  readonly known: Map<string, ApiObject>
  resourceVersion: string | undefined
}

/** Returns the watch of ObjectsApi. Who may list but not watch is served by listing every two seconds. */
export function watchOf(client: ApiClient, pause: Pause): ObjectsApi['watch'] {
  return async function* watch(resource, selection, signal) {
    const position: Position = { known: new Map(), resourceVersion: undefined }
    let polls = false
    let failures = 0
    let isBegun = false
    while (!signal.aborted) {
      try {
        yield* await relist(client, resource, selection, position)
        isBegun = true
        failures = 0
      } catch (error) {
        if (!isBegun || !isOutage(error) || ++failures > mostOutages) throw error
        await rest(pause, pollMs, signal)
        continue
      }
      if (polls) await rest(pause, pollMs, signal)
      // Each stretch goes on where the last one ended, until the server does not remember that place.
      while (!polls && !signal.aborted && position.resourceVersion !== undefined) {
        try {
          const isWhole = yield* stretch(client, { resource, selection, position, signal })
          if (!isWhole) await rest(pause, afterCutMs, signal)
        } catch (error) {
          if (isOutage(error)) position.resourceVersion = undefined
          else if (!(error instanceof StatusError)) throw error
          else if (error.status === 410) position.resourceVersion = undefined
          else if (error.status === 403 || error.status === 405) polls = true
          else throw error
        }
      }
    }
  }
}

function isOutage(error: unknown): boolean {
  return error instanceof KcertError && error.code === 'KCERT_UNREACHABLE'
}

/** Lists anew, and returns what differs from what was told. */
async function relist(
  client: ApiClient,
  resource: Resource,
  selection: Selection,
  position: Position,
): Promise<ObjectChange[]> {
  const { items, resourceVersion } = await listWhole(client, resource, selection)
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

async function listWhole(client: ApiClient, resource: Resource, selection: Selection) {
  const items: ApiObject[] = []
  let next: string | undefined
  for (;;) {
    const page = await readPage(client, resource, selection, next)
    if (page === 'too-old') {
      items.length = 0
      next = undefined
      continue
    }
    items.push(...page.items)
    if (page.next === undefined) return { items, resourceVersion: page.resourceVersion }
    next = page.next
  }
}

interface Stretch {
  readonly resource: Resource
  readonly selection: Selection
  readonly position: Position
  readonly signal: AbortSignal
}

/** Tells of changes until the connection ends. Returns true when the server ended it in good order. */
async function* stretch(
  client: ApiClient,
  { resource, selection, position, signal }: Stretch,
): AsyncGenerator<ObjectChange, boolean> {
  const watchdog = new AbortController()
  const either = AbortSignal.any([signal, watchdog.signal])
  let timer = setTimeout(() => watchdog.abort(), silenceMs)
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
        purpose: `watch ${describeResource(resource)}`,
      },
      either,
    )
    for await (const line of linesOf(chunks)) {
      clearTimeout(timer)
      timer = setTimeout(() => watchdog.abort(), silenceMs)
      const change = taken(line, position)
      if (change !== undefined) yield change
      if (position.resourceVersion === undefined) return true
    }
    return true
  } catch (error) {
    if (either.aborted || error instanceof Unanswered) return false
    throw error
  } finally {
    clearTimeout(timer)
    watchdog.abort()
  }
}

/** Takes one event of the server over into the position. Returns the change to tell of. */
function taken(line: string, position: Position): ObjectChange | undefined {
  const { type, object } = JSON.parse(line) as { type: string; object: ApiObject }
  if (type === 'ERROR') {
    // Nearly always 410: the place is forgotten. Listing anew is right for the others too.
    position.resourceVersion = undefined
    return undefined
  }
  const { resourceVersion } = metadataOf(object)
  if (typeof resourceVersion === 'string') position.resourceVersion = resourceVersion
  if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED') return undefined
  if (type === 'DELETED') position.known.delete(uidOf(object))
  else position.known.set(uidOf(object), object)
  return { type, object }
}

async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let parts: Buffer[] = []
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      parts.push(chunk.subarray(start, end))
      const line = Buffer.concat(parts).toString('utf8')
      parts = []
      start = end + 1
      if (line.trim() !== '') yield line
    }
    if (start < chunk.length) parts.push(chunk.subarray(start))
  }
}

function uidOf(object: ApiObject): string {
  const { uid, name, namespace } = metadataOf(object)
  return typeof uid === 'string' ? uid : `${String(namespace)}/${String(name)}`
}

async function rest(pause: Pause, milliseconds: number, signal: AbortSignal): Promise<void> {
  await pause(milliseconds, signal).catch(() => {})
}
