import { expect, test } from 'vitest'
import { clientDescription, requestPem } from '../../test/csr/made-requests.ts'
import { newRequestObject, signingRequestOfObject } from './request-object.ts'
import type { RequestObject } from './requests-api.ts'

const pem = requestPem(clientDescription())

const stored: RequestObject = {
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: {
    name: 'csr-7x2lq',
    uid: 'u-1',
    resourceVersion: '7',
    creationTimestamp: '2026-11-21T09:00:00Z',
    labels: { team: 'a' },
    annotations: { note: 'b' },
  },
  spec: {
    request: Buffer.from(pem).toString('base64'),
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    usages: ['digital signature', 'client auth'],
    expirationSeconds: 3600,
    username: 'system:node:node-1',
    uid: '',
    groups: ['system:nodes'],
    extra: { scope: ['x'] },
  },
  status: { certificate: 'aGVsbG8=', conditions: [{ type: 'Approved', status: '', reason: 'Ok' }] },
}

test('decodes the base64 fields of an API object, and treats an old condition without a status as true', () => {
  expect(signingRequestOfObject(stored)).toEqual({
    apiVersion: 'certificates.k8s.io/v1',
    name: 'csr-7x2lq',
    uid: 'u-1',
    resourceVersion: '7',
    creationTimestamp: '2026-11-21T09:00:00Z',
    labels: { team: 'a' },
    annotations: { note: 'b' },
    request: Buffer.from(pem),
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    usages: ['digital signature', 'client auth'],
    expirationSeconds: 3600,
    username: 'system:node:node-1',
    groups: ['system:nodes'],
    extra: { scope: ['x'] },
    conditions: [{ type: 'Approved', status: 'True', reason: 'Ok' }],
    certificate: Buffer.from('hello'),
  })
})

test('reads an object without status, usages and groups, and reads invalid base64 as no request', () => {
  const bare = signingRequestOfObject({
    metadata: { name: 'a' },
    spec: { request: '!', signerName: 'example.com/a' },
  })
  expect(bare).toMatchObject({ usages: [], groups: [], extra: {}, conditions: [], labels: {} })
  expect(bare.request).toBeUndefined()
  expect(bare.certificate).toBeUndefined()
})

test('sends only the name, labels, annotations and spec fields of a new request', () => {
  const { metadata, spec, ...rest } = newRequestObject(signingRequestOfObject(stored))
  expect(metadata).toEqual({ name: 'csr-7x2lq', labels: { team: 'a' }, annotations: { note: 'b' } })
  expect(Object.keys(spec).sort()).toEqual(['expirationSeconds', 'request', 'signerName', 'usages'])
  expect(spec.request).toBe(stored.spec.request)
  expect(rest).toEqual({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
  })
})
