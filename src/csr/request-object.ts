import { given } from '../errors/given.ts'
import { decodeBase64 } from '../kubeconfig/base64.ts'
import type { ObjectCondition, RequestObject } from './requests-api.ts'
import type { RequestCondition, SigningRequest } from './signing-request.ts'

// Between what the API server sends and what the rules look at.

/**
 * Returns the object as the rules look at it, its base64 undone. A field that is missing reads as empty: what an old or a foreign
 * API server left out is no reason to fail.
 */
export function signingRequestOfObject(object: RequestObject): SigningRequest {
  const { spec, status } = object
  const { name, generateName, uid, resourceVersion, creationTimestamp } = object.metadata
  const { deletionTimestamp, labels = {}, annotations } = object.metadata
  const certificate = bytesOf(status?.certificate)
  return {
    apiVersion: object.apiVersion ?? 'certificates.k8s.io/v1',
    ...given({ name, generateName, uid, resourceVersion, creationTimestamp, deletionTimestamp }),
    labels,
    ...given({ annotations }),
    request: bytesOf(spec.request),
    signerName: spec.signerName ?? '',
    usages: spec.usages ?? [],
    ...given({ expirationSeconds: spec.expirationSeconds, username: spec.username }),
    ...given({ userUid: spec.uid || undefined }),
    groups: spec.groups ?? [],
    extra: spec.extra ?? {},
    conditions: (status?.conditions ?? []).map(conditionOf),
    ...(certificate?.length ? { certificate } : {}),
  }
}

/** Returns the object to send: what its owner decides and nothing that the API server fills in. */
export function newRequestObject(request: SigningRequest): RequestObject {
  const { name, generateName, labels, annotations, signerName, usages, expirationSeconds } = request
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: {
      ...given({ name, generateName }),
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      ...given({ annotations }),
    },
    spec: {
      request: Buffer.from(request.request ?? []).toString('base64'),
      signerName,
      ...given({ expirationSeconds }),
      usages: [...usages],
    },
  }
}

function conditionOf({ type, status, reason, message, lastUpdateTime }: ObjectCondition): RequestCondition {
  return {
    type,
    // Conditions that were made before Kubernetes 1.18 have no status, and Kubernetes takes them as true.
    status: status || 'True',
    ...given({ reason, message, lastUpdateTime }),
  }
}

function bytesOf(base64: string | undefined): Uint8Array | undefined {
  if (base64 === undefined) return undefined
  const decoded = decodeBase64(base64)
  return 'bytes' in decoded ? decoded.bytes : undefined
}
