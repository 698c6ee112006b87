import { decodeBase64 } from '../kubeconfig/base64.ts'
import type { ObjectCondition, RequestObject } from './requests-api.ts'
import type { RequestCondition, SigningRequest } from './signing-request.ts'

// Between what the API server sends and what the rules look at.

/**
 * Returns the object as the rules look at it, its base64 undone. A field that is missing reads as empty: what an old or a foreign
 * API server left out is no reason to fail.
 */
export function signingRequestOfObject(object: RequestObject): SigningRequest {
  const { metadata, spec, status } = object
  const certificate = octetsOf(status?.certificate)
  return {
    apiVersion: object.apiVersion ?? 'certificates.k8s.io/v1',
    ...given('name', metadata.name),
    ...given('generateName', metadata.generateName),
    ...given('uid', metadata.uid),
    ...given('resourceVersion', metadata.resourceVersion),
    ...given('creationTimestamp', metadata.creationTimestamp),
    ...given('deletionTimestamp', metadata.deletionTimestamp),
    labels: metadata.labels ?? {},
    ...given('annotations', metadata.annotations),
    request: octetsOf(spec.request),
    signerName: spec.signerName ?? '',
    usages: spec.usages ?? [],
    ...given('expirationSeconds', spec.expirationSeconds),
    ...given('username', spec.username),
    ...given('userUid', spec.uid || undefined),
    groups: spec.groups ?? [],
    extra: spec.extra ?? {},
    conditions: (status?.conditions ?? []).map(conditionOf),
    ...(certificate === undefined || certificate.length === 0 ? {} : { certificate }),
  }
}

/** Returns the object to send: what its owner decides and nothing that the API server fills in. */
export function newRequestObject(request: SigningRequest): RequestObject {
  const { name, generateName, labels, annotations, signerName, usages, expirationSeconds } = request
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: {
      ...given('name', name),
      ...given('generateName', generateName),
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      ...given('annotations', annotations),
    },
    spec: {
      request: Buffer.from(request.request ?? []).toString('base64'),
      signerName,
      ...given('expirationSeconds', expirationSeconds),
      usages: [...usages],
    },
  }
}

function conditionOf({ type, status, reason, message, lastUpdateTime }: ObjectCondition): RequestCondition {
  return {
    type,
    // Conditions that were made before Kubernetes 1.18 have no status, and Kubernetes takes them as true.
    status: status || 'True',
    ...given('reason', reason),
    ...given('message', message),
    ...given('lastUpdateTime', lastUpdateTime),
  }
}

function octetsOf(base64: string | undefined): Uint8Array | undefined {
  if (base64 === undefined) return undefined
  const decoded = decodeBase64(base64)
  return 'bytes' in decoded ? decoded.bytes : undefined
}

function given<Key extends string, Value>(key: Key, value: Value | undefined): { [K in Key]?: Value } {
  return (value === undefined ? {} : { [key]: value }) as { [K in Key]?: Value }
}
