import { describe, expect, test } from 'vitest'
import { kubeadmCas, kubeadmKubeconfigs, kubeadmLeaves } from './kubeadm.ts'

// The output of `kubeadm certs check-expiration` and the arguments of `kubeadm certs renew`, from 1.36.
describe("kubeadm's table", () => {
  test('has the names of kubeadm certs renew, and kubelet.conf, which kubeadm does not renew', () => {
    const names = [...kubeadmLeaves, ...kubeadmKubeconfigs].map(({ name }) => name).sort()
    expect(names).toEqual([
      'admin.conf',
      'apiserver',
      'apiserver-etcd-client',
      'apiserver-kubelet-client',
      'controller-manager.conf',
      'etcd-healthcheck-client',
      'etcd-peer',
      'etcd-server',
      'front-proxy-client',
      'kubelet.conf',
      'scheduler.conf',
      'super-admin.conf',
    ])
    expect(kubeadmCas.map(({ name }) => name)).toEqual(['ca', 'front-proxy-ca', 'etcd-ca'])
  })

  test('puts system:masters only into super-admin.conf', () => {
    const rows = [...kubeadmLeaves, ...kubeadmKubeconfigs].filter(({ organization }) =>
      organization.includes('system:masters'),
    )
    expect(rows.map(({ name }) => name)).toEqual(['super-admin.conf'])
  })

  test('signs each leaf with a CA of the table and gives it a usage', () => {
    const cas = kubeadmCas.map(({ name }) => name)
    for (const { name, signer, usages } of [...kubeadmLeaves, ...kubeadmKubeconfigs]) {
      expect({ name, isSigned: cas.includes(signer), hasUsage: usages.length > 0 }).toEqual({
        name,
        isSigned: true,
        hasUsage: true,
      })
    }
  })
})
