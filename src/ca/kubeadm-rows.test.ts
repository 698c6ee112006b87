import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { createRequest, type RequestDescription } from '../x509/issuing.ts'
import { CertificateRequest } from '../x509/request.ts'
import { checkRow, rowOfRequest } from './kubeadm-rows.ts'

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

function faultOf(path: string, description: RequestDescription): unknown {
  const row = rowOfRequest(path)
  if (row === undefined) throw new RangeError(path)
  try {
    checkRow(row, CertificateRequest.parse(createRequest(description, privateKey)), path)
    return undefined
  } catch (error) {
    return error
  }
}

const names = { dns: ['cp1'], ip: ['192.0.2.1'] }

test.each<[string, RequestDescription]>([
  ['apiserver.csr', { subject: { commonName: 'kube-apiserver' }, subjectAltNames: names }],
  ['etcd/server.csr', { subject: { commonName: 'cp1' }, subjectAltNames: names }],
  ['x/pki/etcd/peer.csr', { subject: { commonName: 'cp1' }, subjectAltNames: names }],
  ['front-proxy-client.csr', { subject: { commonName: 'front-proxy-client' } }],
  ['kubelet.conf.csr', { subject: { commonName: 'system:node:cp1', organization: ['system:nodes'] } }],
  [
    'admin.conf.csr',
    { subject: { commonName: 'kubernetes-admin', organization: ['kubeadm:cluster-admins'] } },
  ],
  // As kubeadm before 1.29.
  ['admin.conf.csr', { subject: { commonName: 'kubernetes-admin', organization: ['system:masters'] } }],
  [
    'apiserver.csr',
    { subject: { commonName: 'kube-apiserver' }, subjectAltNames: names, extendedKeyUsage: ['serverAuth'] },
  ],
])('accepts the request %s of kubeadm', (path, description) => {
  expect(faultOf(path, description)).toBeUndefined()
})

test.each<[string, string, RequestDescription, string]>([
  [
    'the CN of another row',
    'scheduler.conf.csr',
    { subject: { commonName: 'kubernetes-admin' } },
    'its common name is "kubernetes-admin", not "system:kube-scheduler"',
  ],
  [
    'a group too many',
    'scheduler.conf.csr',
    { subject: { commonName: 'system:kube-scheduler', organization: ['system:masters'] } },
    'its organizations are "system:masters", not none',
  ],
  [
    'a second group',
    'admin.conf.csr',
    {
      subject: { commonName: 'kubernetes-admin', organization: ['kubeadm:cluster-admins', 'system:masters'] },
    },
    ', not "kubeadm:cluster-admins"',
  ],
  [
    'a missing group',
    'kubelet.conf.csr',
    { subject: { commonName: 'system:node:cp1' } },
    'its organizations are none, not "system:nodes"',
  ],
  [
    'a user as a kubelet',
    'kubelet.conf.csr',
    { subject: { commonName: 'ann', organization: ['system:nodes'] } },
    'its common name is "ann", not system:node:NODE',
  ],
  [
    'a kubelet without node',
    'kubelet.conf.csr',
    { subject: { commonName: 'system:node:', organization: ['system:nodes'] } },
    'its common name is "system:node:"',
  ],
  [
    'a user as an etcd member',
    'etcd/server.csr',
    { subject: { commonName: 'system:admin' }, subjectAltNames: names },
    'its common name is "system:admin"',
  ],
  ['a server without SANs', 'apiserver.csr', { subject: { commonName: 'kube-apiserver' } }, 'it has no SANs'],
  [
    'a server with a URI',
    'apiserver.csr',
    { subject: { commonName: 'kube-apiserver' }, subjectAltNames: { ...names, uri: ['spiffe://x'] } },
    'SANs that are not DNS names or IP addresses: "spiffe://x"',
  ],
  [
    'a client with SANs',
    'front-proxy-client.csr',
    { subject: { commonName: 'front-proxy-client' }, subjectAltNames: { dns: ['kubernetes'] } },
    'a client certificate needs none: "kubernetes"',
  ],
  [
    'a CA',
    'front-proxy-client.csr',
    { subject: { commonName: 'front-proxy-client' }, basicConstraints: { ca: true } },
    'it requests a CA certificate',
  ],
  [
    'a signer',
    'front-proxy-client.csr',
    { subject: { commonName: 'front-proxy-client' }, keyUsage: ['keyCertSign'] },
    'keyCertSign',
  ],
  [
    'another usage',
    'apiserver.csr',
    {
      subject: { commonName: 'kube-apiserver' },
      subjectAltNames: names,
      extendedKeyUsage: ['serverAuth', 'clientAuth'],
    },
    'it requests the extended key usage clientAuth',
  ],
])('refuses %s', (_, path, description, why) => {
  expect(faultOf(path, description)).toMatchObject({
    code: 'KCERT_REQUEST_REFUSED',
    message: expect.stringContaining(`${path} is not a request for kubeadm's `),
    why: expect.stringContaining(why),
  })
})

test.each(['server.csr', 'apiserver.crt', 'my-apiserver.csr', 'ca.csr', 'sa.csr'])(
  '%s is not the request of any row',
  (path) => {
    expect(rowOfRequest(path)).toBeUndefined()
  },
)
