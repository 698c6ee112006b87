import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { SigningRequest } from '../../src/csr/signing-request.ts'
import { createRequest, type RequestDescription } from '../../src/x509/issuing.ts'
import { writePem } from '../../src/x509/pem.ts'

/** One key for all requests of a suite: what it is does not matter to the rules. */
export const someKey: KeyObject = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

/** PEM text of a request for this description. */
export function requestPem(description: RequestDescription, key: KeyObject = someKey): string {
  return writePem('CERTIFICATE REQUEST', createRequest(description, key))
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

/** An object as the API server stores it, made by the kubelet of node-1. */
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
