import { quoted } from './quoting.ts'
import type { RequestObject } from './requests-api.ts'

// What an API server sends is JSON of its schema. Something else that answers at its address may send anything.

type Shape =
  | 'text'
  | 'number'
  | 'boolean'
  | { readonly each: Shape }
  | { readonly values: Shape }
  | { readonly fields: Readonly<Record<string, Shape>>; readonly needs?: readonly string[] }

const texts: Shape = { each: 'text' }
const pairs: Shape = { values: 'text' }

const condition: Shape = {
  fields: {
    type: 'text',
    status: 'text',
    reason: 'text',
    message: 'text',
    lastUpdateTime: 'text',
    lastTransitionTime: 'text',
  },
  needs: ['type'],
}

// The API server decodes these of a new object too; of what it answers, kcert takes them as they come.
const metadataOfManifest: Readonly<Record<string, Shape>> = {
  namespace: 'text',
  selfLink: 'text',
  generation: 'number',
  deletionGracePeriodSeconds: 'number',
  finalizers: texts,
  ownerReferences: {
    each: {
      fields: {
        apiVersion: 'text',
        kind: 'text',
        name: 'text',
        uid: 'text',
        controller: 'boolean',
        blockOwnerDeletion: 'boolean',
      },
    },
  },
}

const shape = {
  fields: {
    apiVersion: 'text',
    kind: 'text',
    metadata: {
      fields: {
        name: 'text',
        generateName: 'text',
        uid: 'text',
        resourceVersion: 'text',
        creationTimestamp: 'text',
        deletionTimestamp: 'text',
        labels: pairs,
        annotations: pairs,
      },
      needs: ['name'],
    },
    spec: {
      fields: {
        request: 'text',
        signerName: 'text',
        usages: texts,
        expirationSeconds: 'number',
        username: 'text',
        uid: 'text',
        groups: texts,
        extra: { values: texts },
      },
    },
    status: { fields: { certificate: 'text', conditions: { each: condition } } },
  },
  needs: ['metadata', 'spec'],
} as const satisfies Shape

const manifestShape: Shape = {
  fields: {
    ...shape.fields,
    metadata: { fields: { ...shape.fields.metadata.fields, ...metadataOfManifest } },
  },
}

/** Returns which fields of a manifest have another type than the API server decodes, as fragments; those missing are none. */
export function typeFaults(value: unknown): string[] {
  const faults: string[] = []
  fitted(value, manifestShape, '', faults)
  return faults
}

/**
 * Returns the object as the rest of kcert takes it: each field that kcert names has its type or is not there (null is as nothing, as
 * Kubernetes reads it); the others are as they came. For anything else, a fragment that says what is wrong.
 */
export function shapedRequest(value: unknown): RequestObject | { readonly fault: string } {
  const faults: string[] = []
  const shaped = fitted(value, shape, '', faults)
  return faults.length === 0 ? (shaped as RequestObject) : { fault: faults.slice(0, mostFaults).join(', ') }
}

const mostFaults = 3

function fitted(value: unknown, form: Shape, path: string, faults: string[]): unknown {
  const isFit =
    typeof form === 'string'
      ? typeof value === typeOf[form]
      : Array.isArray(value) === 'each' in form && typeof value === 'object' && value !== null
  if (!isFit) faults.push(`${path || 'it'} is no ${wordFor(form)}`)
  if (!isFit || typeof form === 'string') return value
  if ('each' in form)
    return (value as unknown[]).map((one, index) => fitted(one, form.each, `${path}[${index}]`, faults))
  const entries = Object.entries(value as object).filter(([, one]) => one !== null)
  if ('fields' in form) {
    const missing = (form.needs ?? []).filter((name) => !entries.some(([key]) => key === name))
    for (const name of missing) faults.push(`${join(path, name)} is missing`)
  }
  return Object.fromEntries(
    entries.map(([key, one]) => {
      const inner = 'values' in form ? form.values : Object.hasOwn(form.fields, key) && form.fields[key]
      // A key of a map is anybody's text.
      const place = 'values' in form ? `${path}[${quoted(key)}]` : join(path, key)
      return [key, inner ? fitted(one, inner, place, faults) : one]
    }),
  )
}

const typeOf = { text: 'string', number: 'number', boolean: 'boolean' } as const

function wordFor(form: Shape): string {
  if (typeof form === 'string') return form
  return 'each' in form ? 'list' : 'object'
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
