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

test('an object of the API server is read with its base64 undone, and an old condition without status counts', () => {
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

test('an object without status, usages and groups is read, and base64 that is none is no request', () => {
  const bare = signingRequestOfObject({
    metadata: { name: 'a' },
    spec: { request: '!', signerName: 'example.com/a' },
  })
  expect(bare).toMatchObject({ usages: [], groups: [], extra: {}, conditions: [], labels: {} })
  expect(bare.request).toBeUndefined()
  expect(bare.certificate).toBeUndefined()
})

test('what is sent has what unknown: kcert does not know its rules and nothing of who asked or what came of it', () => {
  const { metadata, spec, ...rest } = newRequestObject(signingRequestOfObject(stored))
  expect(metadata).toEqual({ name: 'csr-7x2lq', labels: { team: 'a' }, annotations: { note: 'b' } })
  expect(Object.keys(spec).sort()).toEqual(['expirationSeconds', 'request', 'signerName', 'usages'])
  expect(spec.request).toBe(stored.spec.request)
  expect(rest).toEqual({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
  })
})
