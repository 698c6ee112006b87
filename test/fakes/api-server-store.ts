import { randomInt, randomUUID } from 'node:crypto'

// The objects of the fake API server: versions, preconditions, selectors, pages and the log that watches read.

export type Json = Record<string, unknown>

export interface Stored extends Json {
  metadata: Metadata
}

export interface Metadata extends Json {
  name: string
  namespace?: string
  uid: string
  resourceVersion: string
  creationTimestamp: string
  labels?: Record<string, string>
}

export interface Key {
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly namespace?: string | undefined
}

export interface Event {
  readonly version: number
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly key: Key
  readonly object: Stored
}

/** A refusal with the API server's wording. */
export class Refused extends Error {
  readonly status: number
  readonly reason: string
  readonly details: Json

  constructor(status: number, reason: string, message: string, details: Json = {}) {
    super(message)
    this.status = status
    this.reason = reason
    this.details = details
  }
}

export class Store {
  #version = 1000
  /** Older versions are compacted. */
  #oldest = 0
  #events: Event[] = []
  readonly #objects = new Map<string, { key: Key; object: Stored }>()
  readonly #listeners = new Set<(event: Event) => void>()
  readonly #lists = new Map<string, { version: number; rest: Stored[] }>()
  readonly #now: () => Date

  constructor(now: () => Date) {
    this.#now = now
  }

  get version(): number {
    return this.#version
  }

  get(key: Key, name: string): Stored {
    const found = this.#objects.get(keyText(key, name))
    if (found === undefined) throw this.notFound(key, name)
    return found.object
  }

  has(key: Key, name: string): boolean {
    return this.#objects.has(keyText(key, name))
  }

  notFound({ group, resource }: Key, name: string): Refused {
    const kind = group === '' ? resource : `${resource}.${group}`
    return new Refused(404, 'NotFound', `${kind} "${name}" not found`, { name, group, kind: resource })
  }

  /** Returns every object of that kind, sorted by name. */
  all(key: Key): Stored[] {
    const found = [...this.#objects.values()].filter(
      (entry) =>
        entry.key.group === key.group &&
        entry.key.resource === key.resource &&
        (key.namespace === undefined || entry.key.namespace === key.namespace),
    )
    return found.map(({ object }) => object).sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  }

  create(key: Key, given: Json, dryRun = false): Stored {
    const metadata = (given.metadata ?? {}) as Partial<Metadata> & { generateName?: string }
    const name = metadata.name || this.#drawName(key, metadata.generateName ?? '')
    if (this.has(key, name)) {
      const kind = key.group === '' ? key.resource : `${key.resource}.${key.group}`
      throw new Refused(409, 'AlreadyExists', `${kind} "${name}" already exists`, { name })
    }
    const object: Stored = {
      ...given,
      metadata: {
        ...metadata,
        name,
        ...(key.namespace !== undefined && { namespace: key.namespace }),
        uid: randomUUID(),
        creationTimestamp: seconds(this.#now()),
        resourceVersion: dryRun ? '' : String(this.#version + 1),
      },
    }
    if (dryRun) return object
    this.#version++
    this.#objects.set(keyText(key, name), { key, object })
    this.#tell('ADDED', key, object)
    return object
  }

  /** As in the real API server: five characters, drawn again while an object has that name, at most eight times. */
  #drawName(key: Key, prefix: string): string {
    const alphabet = 'bcdfghjklmnpqrstvwxz2456789'
    const draw = (): string =>
      prefix + Array.from({ length: 5 }, () => alphabet[randomInt(alphabet.length)]).join('')
    const names = Array.from({ length: 8 }, draw)
    return names.find((name) => !this.has(key, name)) ?? names.at(-1)!
  }

  /** Writes with the preconditions in `given`. */
  replace(key: Key, name: string, given: Json, change: (old: Stored) => Json, dryRun = false): Stored {
    const old = this.get(key, name)
    const { uid, resourceVersion } = (given.metadata ?? {}) as Partial<Metadata>
    const kind = key.group === '' ? key.resource : `${key.resource}.${key.group}`
    if (uid !== undefined && uid !== old.metadata.uid) {
      throw new Refused(
        409,
        'Conflict',
        `Operation cannot be fulfilled on ${kind} "${name}": Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`,
        { name },
      )
    }
    if (resourceVersion !== undefined && resourceVersion !== old.metadata.resourceVersion) {
      throw new Refused(
        409,
        'Conflict',
        `Operation cannot be fulfilled on ${kind} "${name}": the object has been modified; please apply your changes to the latest version and try again`,
        { name },
      )
    }
    const changed = change(old)
    const { uid: oldUid, creationTimestamp, namespace, resourceVersion: oldVersion } = old.metadata
    const object: Stored = {
      ...changed,
      metadata: {
        ...(changed.metadata as Metadata),
        name,
        ...(namespace !== undefined && { namespace }),
        uid: oldUid,
        creationTimestamp,
        resourceVersion: oldVersion,
      },
    }
    // etcd stores no new version for a write that changes nothing.
    if (dryRun || JSON.stringify(object) === JSON.stringify(old)) return object
    object.metadata.resourceVersion = String(++this.#version)
    this.#objects.set(keyText(key, name), { key, object })
    this.#tell('MODIFIED', key, object)
    return object
  }

  delete(key: Key, name: string, preconditions: Partial<Metadata> = {}): Stored {
    const old = this.get(key, name)
    for (const field of ['uid', 'resourceVersion'] as const) {
      if (preconditions[field] !== undefined && preconditions[field] !== old.metadata[field])
        throw new Refused(409, 'Conflict', `Precondition failed: ${field}`, { name })
    }
    this.#objects.delete(keyText(key, name))
    const object = { ...old, metadata: { ...old.metadata, resourceVersion: String(++this.#version) } }
    this.#tell('DELETED', key, object)
    return old
  }

  /** Returns a page of a list, as of the time of its first page. */
  page(key: Key, matches: (object: Stored) => boolean, limit: number, next: string | null) {
    const known = next === null ? undefined : this.#lists.get(next)
    if (next !== null && known === undefined) throw tooOld()
    const { version, rest } = known ?? { version: this.#version, rest: this.all(key).filter(matches) }
    const items = limit > 0 ? rest.slice(0, limit) : rest
    const left = rest.slice(items.length)
    if (left.length === 0) return { items, version }
    const token = Buffer.from(JSON.stringify({ v: version, at: randomUUID() })).toString('base64url')
    this.#lists.set(token, { version, rest: left })
    return { items, version, next: token, left: left.length }
  }

  /** Returns the events since a version. Throws when that version is compacted. */
  since(version: number): Event[] {
    if (version < this.#oldest) throw tooOld()
    return this.#events.filter((event) => event.version > version)
  }

  listen(listener: (event: Event) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Drops continued lists and all events up to now, as etcd's compaction does. */
  compact(): void {
    this.#lists.clear()
    this.#events = []
    this.#oldest = ++this.#version
  }

  #tell(type: Event['type'], key: Key, object: Stored): void {
    const event = { version: Number(object.metadata.resourceVersion), type, key, object }
    this.#events.push(event)
    for (const listener of this.#listeners) listener(event)
  }
}

export function tooOld(): Refused {
  return new Refused(410, 'Expired', 'The provided continue parameter or resourceVersion is too old.')
}

/** Returns a predicate for a selector. Throws for fields that the server does not support. */
export function selector(
  labels: string | null,
  fields: string | null,
  key: Key,
): (object: Stored) => boolean {
  const wanted = [...labelTests(labels ?? ''), ...fieldTests(fields ?? '', key)]
  return (object) => wanted.every((test) => test(object))
}

function labelTests(text: string): ((object: Stored) => boolean)[] {
  const parts = text.match(/(?:[^,(]|\([^)]*\))+/g) ?? []
  return parts.map((part) => {
    const set = /^\s*(\S+)\s+(in|notin)\s+\(([^)]*)\)\s*$/.exec(part)
    if (set !== null) {
      const [, label = '', operator, list = ''] = set
      const values = list.split(',').map((value) => value.trim())
      return ({ metadata: { labels = {} } }) =>
        operator === 'in'
          ? labels[label] !== undefined && values.includes(labels[label])
          : labels[label] === undefined || !values.includes(labels[label])
    }
    const compared = /^\s*([^=!\s]+)\s*(==?|!=)\s*(\S*)\s*$/.exec(part)
    if (compared !== null) {
      const [, label = '', operator, value] = compared
      return ({ metadata: { labels = {} } }) => (labels[label] === value) === (operator !== '!=')
    }
    const [, not, label = ''] = /^\s*(!?)(\S+)\s*$/.exec(part) ?? []
    return ({ metadata: { labels = {} } }) => (labels[label] !== undefined) === (not === '')
  })
}

function fieldTests(text: string, { resource }: Key): ((object: Stored) => boolean)[] {
  const parts = text.split(',').filter((part) => part !== '')
  return parts.map((part) => {
    const [, field = '', operator, value = ''] = /^([^=!]+)(==?|!=)(.*)$/.exec(part) ?? []
    const known = ['metadata.name', 'metadata.namespace']
    if (/^(certificatesigning|podcertificate)requests$/.test(resource)) known.push('spec.signerName')
    if (resource === 'secrets') known.push('type')
    if (resource === 'events') known.push('involvedObject.uid')
    if (!known.includes(field)) throw new Refused(400, 'BadRequest', `field label not supported: ${field}`)
    return (object) => {
      const found = field
        .split('.')
        .reduce<unknown>((at, step) => (at as Json | undefined)?.[step], object as unknown)
      return ((found ?? '') === value) === (operator !== '!=')
    }
  })
}

function keyText({ group, resource, namespace = '' }: Key, name: string): string {
  return [group, resource, namespace, name].join('/')
}

/** The API server writes times without fractions. */
export function seconds(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`
}
