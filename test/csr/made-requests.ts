import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { SigningRequest } from '../../src/csr/signing-request.ts'
import { bitString, explicit, integer, oid, sequence, setOf } from '../../src/x509/der-writer.ts'
import { encodeExtensions } from '../../src/x509/extension-encoding.ts'
import { createRequest, type RequestDescription } from '../../src/x509/issuing.ts'
import { encodeName, type NameInput } from '../../src/x509/name-encoding.ts'
import { oidOf } from '../../src/x509/oids.ts'
import { writePem } from '../../src/x509/pem.ts'

/** One key for all requests of a suite: the rules do not depend on it. */
export const someKey: KeyObject = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

/** Returns the PEM text of a request for this description. */
export function requestPem(description: RequestDescription, key: KeyObject = someKey): string {
  return writePem('CERTIFICATE REQUEST', createRequest(description, key))
}

/**
 * Returns the PEM text of a request with arbitrary attributes; `tail` is appended to the list of attributes. The signature is
 * that of `someKey`, even when another public key is given.
 */
export function craftedRequestPem(
  subject: NameInput,
  attributes: readonly Uint8Array[],
  tail: readonly Uint8Array[] = [],
  spki: Uint8Array = createPublicKey(someKey).export({ format: 'der', type: 'spki' }),
): string {
  const info = sequence(integer(0), encodeName(subject), spki, explicit(0, ...attributes), ...tail)
  const algorithm = sequence(oid(oidOf('ecdsa-with-SHA256')))
  return writePem('CERTIFICATE REQUEST', sequence(info, algorithm, bitString(sign('sha256', info, someKey))))
}

/** Returns an attribute of a request. */
export function attribute(type: string, ...values: readonly Uint8Array[]): Uint8Array {
  return sequence(oid(type), setOf(...values))
}

/** Returns the value of an extensionRequest with these extensions. */
export function extensionsFor(description: RequestDescription): Uint8Array {
  return sequence(...encodeExtensions(description, false))
}

/** The request of a kubelet for its serving certificate, as the API server stores it. */
export const nodeNames = {
  dns: ['node-1', 'node-1.nodes.example.com'],
  ip: ['10.1.0.7', '2001:db8::7'],
} as const

export function servingDescription(): RequestDescription {
  return {
    subject: { commonName: 'system:node:node-1', organization: ['system:nodes'] },
    subjectAltNames: { dns: [...nodeNames.dns], ip: [...nodeNames.ip] },
  }
}

export function clientDescription(): RequestDescription {
  return { subject: { commonName: 'system:node:node-1', organization: ['system:nodes'] } }
}

/** Returns an object as the API server stores it, created by the kubelet of node-1. */
export function submitted(
  description: RequestDescription,
  fields: Partial<SigningRequest> & Pick<SigningRequest, 'signerName' | 'usages'>,
): SigningRequest {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    name: 'csr-7x2lq',
    uid: '5b1c2d3e-0000-4000-8000-000000000001',
    resourceVersion: '100',
    labels: {},
    request: Buffer.from(requestPem(description)),
    username: 'system:node:node-1',
    groups: ['system:nodes', 'system:authenticated'],
    extra: {},
    conditions: [],
    ...fields,
  }
}

export function servingRequest(fields: Partial<SigningRequest> = {}): SigningRequest {
  return submitted(servingDescription(), {
    signerName: 'kubernetes.io/kubelet-serving',
    usages: ['digital signature', 'server auth'],
    ...fields,
  })
}

export function clientRequest(fields: Partial<SigningRequest> = {}): SigningRequest {
  return submitted(clientDescription(), {
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    usages: ['digital signature', 'client auth'],
    ...fields,
  })
}
