import { expect, test } from 'vitest'
import { kubeadmKubeconfigs, kubeadmLeaves } from './kubeadm.ts'
import { kubeadmVersion, organizationAt } from './kubeadm-organization.ts'

const row = (name: string) => [...kubeadmLeaves, ...kubeadmKubeconfigs].find((one) => one.name === name)!
const at = (name: string, version: string) => organizationAt(row(name), kubeadmVersion(version))

// kubernetes#121837 (1.29) and #138957 with its cherry-picks.
test.each([
  ['v1.28.15', ['system:masters']],
  ['v1.29.0', ['kubeadm:cluster-admins']],
  ['v1.32.13', ['kubeadm:cluster-admins']],
  ['v1.33.11', ['kubeadm:cluster-admins']],
  ['v1.33.12', []],
  ['v1.34.7', ['kubeadm:cluster-admins']],
  ['1.34.8', []],
  ['v1.35.4', ['kubeadm:cluster-admins']],
  ['v1.35.5', []],
  ['v1.36.0', ['kubeadm:cluster-admins']],
  ['v1.36.1', []],
  ['v1.37.0', []],
  ['v1.40.0', []],
  ['stable-1.35', []],
  ['stable-1.31', ['kubeadm:cluster-admins']],
  ['v1.35.3+rke2r1', ['kubeadm:cluster-admins']],
])('kubeadm %s gives apiserver-kubelet-client the organizations %j', (version, organizations) => {
  expect(at('apiserver-kubelet-client', version)).toEqual(organizations)
})

test.each(['admin.conf', 'apiserver-etcd-client', 'etcd-healthcheck-client'])(
  'writes system:masters into %s only before kubeadm 1.29',
  (name) => {
    expect(at(name, 'v1.28.9')).toEqual(['system:masters'])
    expect(at(name, 'v1.29.0')).toEqual(row(name).organization)
    expect(at(name, 'v1.36.0')).toEqual(row(name).organization)
  },
)

test('uses the organizations of the newest kubeadm without a version', () => {
  expect(organizationAt(row('apiserver-kubelet-client'), undefined)).toEqual([])
})

test.each(['', 'stable-1', 'latest', 'nonsense', '1', 'v2.3.4', '1.36.1.2'])(
  'finds no version in %j',
  (text) => {
    expect(kubeadmVersion(text)).toBeUndefined()
  },
)
