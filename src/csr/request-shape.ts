import { fitted, metadataFields, type Shape, texts } from './json-shape.ts'
import type { RequestObject } from './requests-api.ts'

// An API server sends JSON of its schema. Another server at its address may send anything.

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

// The API server decodes these fields of a new object too. In a response, kcert does not check them.
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
      fields: { ...metadataFields, generateName: 'text' },
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

/**
 * Returns which fields of a manifest have another type than the API server decodes, as fragments. A missing field is not an
 * error.
 */
export function typeFaults(value: unknown): string[] {
  const faults: string[] = []
  fitted(value, manifestShape, '', faults)
  return faults
}

/**
 * Returns the object with typed fields: each field that kcert reads has its type or is absent (null counts as absent, as in
 * Kubernetes). All other fields are unchanged. For invalid input, returns a fragment that describes the error.
 */
export function shapedRequest(value: unknown): RequestObject | { readonly fault: string } {
  const faults: string[] = []
  const shaped = fitted(value, shape, '', faults)
  return faults.length === 0 ? (shaped as RequestObject) : { fault: faults.slice(0, mostFaults).join(', ') }
}

const mostFaults = 3
