import { expect, test } from 'vitest'
import { readKubeletConfiguration } from './kubelet-configuration.ts'

const kubeadms = `apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
cgroupDriver: systemd
kind: KubeletConfiguration
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
`

test("reads the client CA and the certificate rotation from kubeadm's file", async () => {
  expect(await readKubeletConfiguration(kubeadms)).toEqual({
    clientCaFile: '/etc/kubernetes/pki/ca.crt',
    rotateCertificates: true,
    staticPodPath: '/etc/kubernetes/manifests',
    featureGates: {},
  })
})

test('rejects another kind and text that is not YAML', async () => {
  for (const text of ['kind: KubeProxyConfiguration\n', 'kind: [', '']) {
    await expect(readKubeletConfiguration(text)).rejects.toMatchObject({ code: 'KCERT_MANIFEST_MALFORMED' })
  }
})
