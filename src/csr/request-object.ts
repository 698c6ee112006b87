import { given } from '../errors/given.ts'
import { decodeBase64 } from '../kubeconfig/base64.ts'
import type { ObjectCondition, RequestObject } from './requests-api.ts'
import type { RequestCondition, SigningRequest } from './signing-request.ts'

// Converts API objects to the form that the rules read.

/**
 * Returns the object in the form that the rules read, with base64 decoded. A missing field reads as empty: a field that an old or
 * another API server omits is not an error.
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

/** Returns the object to send: only the fields that its owner sets, without those that the API server fills in. */
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
    // Conditions that were created before Kubernetes 1.18 have no status, and Kubernetes treats them as true.
    status: status || 'True',
    ...given({ reason, message, lastUpdateTime }),
  }
}

function bytesOf(base64: string | undefined): Uint8Array | undefined {
  if (base64 === undefined) return undefined
  const decoded = decodeBase64(base64)
  return 'bytes' in decoded ? decoded.bytes : undefined
}
