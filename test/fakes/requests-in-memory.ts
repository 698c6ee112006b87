import type {
  RequestChange,
  RequestObject,
  RequestSelection,
  RequestsApi,
} from '../../src/csr/requests-api.ts'
import { KcertError } from '../../src/errors/kcert-error.ts'

export type Call = 'get' | 'list' | 'create' | 'replaceApproval' | 'replaceStatus' | 'watch'

/** The fault of one call: it fails before or after the server acts. */
export type Fault = { readonly error: KcertError; readonly when: 'before' | 'after' }

export interface RequestsInMemory extends RequestsApi {
  readonly calls: Call[]
  readonly writes: RequestObject[]
  put(object: RequestObject): RequestObject
  peek(name: string): RequestObject | undefined
  remove(name: string): void
  /** Called before every call to select its fault. */
  fault: (call: Call, count: number) => Fault | undefined
  /** Runs before every call. */
  meanwhile: (call: Call) => void
}

/** The requests of a cluster, in memory. requests-in-memory.md is its contract. */
export function requestsInMemory(): RequestsInMemory {
  const objects = new Map<string, RequestObject>()
  const watchers = new Set<(change: RequestChange) => void>()
  let version = 100
  const tell = (type: RequestChange['type'], object: RequestObject): void => {
    for (const watcher of watchers) watcher({ type, object: structuredClone(object) })
  }
  const store = (object: RequestObject): RequestObject => {
    const { name = '', uid = `uid-${++version}` } = object.metadata
    const stored = {
      ...object,
      metadata: { ...object.metadata, name, uid, resourceVersion: String(++version) },
    }
    const type = objects.has(name) ? 'MODIFIED' : 'ADDED'
    objects.set(name, stored)
    tell(type, stored)
    return structuredClone(stored)
  }
  const call = async <Result>(name: Call, act: () => Result): Promise<Result> => {
    fake.calls.push(name)
    const fault = fake.fault(name, fake.calls.length)
    if (fault?.when === 'before') throw fault.error
    fake.meanwhile(name)
    const result = act()
    if (fault?.when === 'after') throw fault.error
    return result
  }
  const replace = (object: RequestObject): RequestObject => {
    const { name = '', uid, resourceVersion } = object.metadata
    const now = objects.get(name)
    if (now === undefined) throw new KcertError('KCERT_API_NOT_FOUND', `there is no request "${name}"`)
    if (now.metadata.uid !== uid || now.metadata.resourceVersion !== resourceVersion)
      throw new KcertError('KCERT_API_CONFLICT', `request "${name}" is not what it was`)
    fake.writes.push(structuredClone(object))
    return store({ ...now, ...(object.status && { status: object.status }) })
  }
  const fake: RequestsInMemory = {
    calls: [],
    writes: [],
    fault: () => undefined,
    meanwhile: () => undefined,
    put: store,
    peek: (name) => objects.get(name),
    remove(name) {
      const object = objects.get(name)
      objects.delete(name)
      if (object !== undefined) tell('DELETED', object)
    },
    async *list({ signerName, labelSelector }: RequestSelection = {}) {
      if (labelSelector !== undefined) throw new Error('label selectors are not in this fake')
      const found = await call('list', () => structuredClone([...objects.values()]))
      yield* found.filter(({ spec }) => signerName === undefined || spec.signerName === signerName)
    },
    get: (name) => call('get', () => structuredClone(objects.get(name))),
    create: (object, { dryRun } = { dryRun: false }) =>
      call('create', () => {
        const { name = '' } = object.metadata
        if (objects.has(name)) throw new KcertError('KCERT_API_CONFLICT', `request "${name}" already exists`)
        return dryRun ? structuredClone(object) : store(object)
      }),
    replaceApproval: (object, confirm) =>
      call('replaceApproval', () => {
        confirm?.()
        return replace(object)
      }),
    replaceStatus: (object) => call('replaceStatus', () => replace(object)),
    async *watch(name, signal) {
      const changes: RequestChange[] = []
      let wake = () => {}
      const watcher = (change: RequestChange): void => {
        if (change.object.metadata.name === name) changes.push(change)
        wake()
      }
      const object = await call('watch', () => structuredClone(objects.get(name)))
      watchers.add(watcher)
      signal.addEventListener('abort', () => wake())
      try {
        if (object !== undefined) yield { type: 'ADDED', object }
        while (!signal.aborted) {
          const change = changes.shift()
          if (change !== undefined) yield change
          else await new Promise<void>((resolve) => (wake = resolve))
        }
      } finally {
        watchers.delete(watcher)
      }
    },
  }
  return fake
}
