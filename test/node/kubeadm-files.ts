import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const kubeadm = join(import.meta.dirname, '../../.bench/bin/kubeadm')
const components = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'etcd']

/** Returns manifests by component from the real kubeadm or, if it is not installed, with the same structure. */
export function kubeadmManifests(): Readonly<Record<string, string>> {
  if (!existsSync(kubeadm)) {
    process.stderr.write('no .bench/bin/kubeadm here: a manifest of its shape is edited, not its own\n')
    return {
      'kube-controller-manager': fixture,
      'kube-scheduler': fixture.replaceAll('controller-manager', 'scheduler'),
    }
  }
  const root = mkdtempSync(join(tmpdir(), 'kcert-kubeadm-'))
  try {
    mkdirSync(join(root, 'etc'))
    writeFileSync(join(root, 'etc/config.yaml'), config)
    for (const phase of [
      ['control-plane', 'all'],
      ['etcd', 'local'],
    ]) {
      const words = ['init', 'phase', ...phase, '--config', '/etc/config.yaml', '--rootfs', root]
      execFileSync(kubeadm, words, { stdio: ['ignore', 'ignore', 'inherit'] })
    }
    return Object.fromEntries(
      components.map((name) => [
        name,
        readFileSync(join(root, 'etc/kubernetes/manifests', `${name}.yaml`), 'utf8'),
      ]),
    )
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

const config = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.0.0.1}
nodeRegistration: {name: cp1, criSocket: unix:///run/containerd/containerd.sock}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
controlPlaneEndpoint: 10.0.0.10:6443
`

const fixture = `apiVersion: v1
kind: Pod
metadata:
  labels:
    component: kube-controller-manager
  name: kube-controller-manager
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-controller-manager
    - --cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt
    - --cluster-signing-key-file=/etc/kubernetes/pki/ca.key
    - --controllers=*,bootstrapsigner,tokencleaner
    - --leader-elect=true
    - --root-ca-file=/etc/kubernetes/pki/ca.crt
    image: registry.k8s.io/kube-controller-manager:v1.36.3
    name: kube-controller-manager
    volumeMounts:
    - mountPath: /etc/kubernetes/pki
      name: k8s-certs
      readOnly: true
  hostNetwork: true
  volumes:
  - hostPath:
      path: /etc/kubernetes/pki
      type: DirectoryOrCreate
    name: k8s-certs
status: {}
`
