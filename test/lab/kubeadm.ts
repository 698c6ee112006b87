import { createHash, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { kubeletCgroup } from './cgroups.ts'
import { sleep } from './command.ts'
import { type ExternalEtcd, externalEtcdFiles, writeExternalEtcd } from './external-etcd.ts'
import { LabError } from './lab-error.ts'
import { hostPath, onNode } from './node.ts'
import { writeAt } from './node-files.ts'
import { type ClusterSpec, type NodeIdentity, network, releases } from './spec.ts'
import { paths, readRecord } from './state.ts'

const api = 'kubeadm.k8s.io/v1beta4'
const endpoint = `${network.loadBalancer}:6443`
const configFile = '/root/kubeadm.yaml'

/** Creates the first control-plane node of a cluster. */
export async function kubeadmInit(
  node: NodeIdentity,
  spec: ClusterSpec,
  external?: ExternalEtcd,
): Promise<void> {
  if (external !== undefined) writeExternalEtcd(node.name, external)
  writeConfig(node, [
    {
      apiVersion: api,
      kind: 'InitConfiguration',
      localAPIEndpoint: { advertiseAddress: node.address, bindPort: 6443 },
      nodeRegistration: registration(node),
    },
    clusterConfiguration(spec, external),
    kubeletConfiguration(node),
    kubeProxyConfiguration(),
  ])
  await kubeadm(node, ['init', '--skip-phases=preflight'], 300_000)
}

/** The join credentials of a node (default: a token from kubeadm and the CA cert hash of the first control plane). */
export interface JoinSecrets {
  readonly pin?: string
  readonly token?: string
}

/** Joins a node to the cluster of the control plane `first`. */
export async function kubeadmJoin(
  node: NodeIdentity,
  first: string,
  { pin = caPin(first), token }: JoinSecrets = {},
): Promise<void> {
  const create = ['kubeadm', 'token', 'create', '--ttl', '15m']
  const bootstrapToken = {
    apiServerEndpoint: endpoint,
    token: token ?? (await onNode(first, create)).stdout.trim(),
    caCertHashes: [pin],
  }
  const join = {
    apiVersion: api,
    kind: 'JoinConfiguration',
    discovery: { bootstrapToken },
    nodeRegistration: registration(node),
    patches: { directory: '/root/patches' },
  }
  // The kubelet's cgroup is the only setting that differs between nodes. A kubeadm patch sets it in the shared configuration.
  const patch = JSON.stringify({ cgroupRoot: kubeletCgroup(node.name) })
  writeAt(paths.node(node.name), 'root/patches/kubeletconfiguration+merge.json', patch)
  if (node.role === 'control-plane') {
    // Without its configuration, kubeadm assumes etcd on the control planes, and does not upload the files of external etcd.
    const isExternal = (readRecord()?.spec.etcdMachines ?? 0) > 0
    const config = isExternal ? ['--config', configFile] : []
    const certificateKey = (
      await onNode(first, ['kubeadm', 'init', 'phase', 'upload-certs', '--upload-certs', ...config])
    ).stdout
      .trim()
      .split('\n')
      .at(-1)
    writeConfig(node, [
      { ...join, controlPlane: { localAPIEndpoint: { advertiseAddress: node.address }, certificateKey } },
    ])
  } else {
    writeConfig(node, [join])
  }
  await kubeadm(node, ['join', '--skip-phases=preflight'], 240_000)
}

/** Removes a node as an operator does: its etcd member, if it has one, and its kubelet. */
export async function kubeadmReset(node: NodeIdentity): Promise<void> {
  await onNode(node.name, ['kubeadm', 'reset', '--force'], { timeoutMs: 120_000, mayFail: true })
}

async function kubeadm(node: NodeIdentity, args: readonly string[], timeoutMs: number): Promise<void> {
  const result = await onNode(
    node.name,
    ['kubeadm', ...args, '--config', configFile, '--ignore-preflight-errors=all'],
    { timeoutMs, mayFail: true },
  )
  writeAt(paths.node(node.name), 'var/log/kubeadm.log', result.stdout + result.stderr)
  if (result.code === 0) return
  throw new LabError(`kubeadm ${args[0]} gave up on ${node.name}`, {
    why: result.stderr.trimEnd().split('\n').slice(-6).join('\n'),
    next: `read var/log/{kubeadm,kubelet}.log in ${paths.node(node.name)}`,
  })
}

/** Repeats work after `recover`: kubeadm gives up when a static pod starts slowly. */
export async function retried(
  attempts: number,
  work: () => Promise<void>,
  recover: (error: unknown) => Promise<void>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt >= attempts) throw error
      await recover(error)
      await sleep(1000)
    }
  }
}

function writeConfig(node: NodeIdentity, documents: readonly object[]): void {
  writeAt(
    paths.node(node.name),
    configFile,
    documents.map((document) => JSON.stringify(document, null, 2)).join('\n---\n'),
    0o600,
  )
}

function registration(node: NodeIdentity): object {
  const args = [{ name: 'node-ip', value: node.address }]
  return { name: node.name, taints: [], imagePullPolicy: 'IfNotPresent', kubeletExtraArgs: args }
}

function clusterConfiguration(spec: ClusterSpec, external: ExternalEtcd | undefined): object {
  const clientCa = { name: 'client-ca-file', value: '/etc/kubernetes/pki/ca.crt' }
  const more = spec.allFlags
    ? {
        apiServer: {
          extraArgs: [
            { name: 'kubelet-certificate-authority', value: '/etc/kubernetes/pki/ca.crt' },
            { name: 'shutdown-delay-duration', value: '10s' },
          ],
        },
        controllerManager: { extraArgs: [clientCa] },
        scheduler: {
          extraArgs: [clientCa],
          extraVolumes: [
            {
              name: 'pki',
              hostPath: '/etc/kubernetes/pki',
              mountPath: '/etc/kubernetes/pki',
              readOnly: true,
              pathType: 'Directory',
            },
          ],
        },
      }
    : {}
  return {
    apiVersion: api,
    kind: 'ClusterConfiguration',
    clusterName: 'lab',
    kubernetesVersion: releases[spec.kubernetes['control-plane']].kubernetes,
    controlPlaneEndpoint: endpoint,
    encryptionAlgorithm: spec.keys,
    networking: { podSubnet: network.podSubnet, serviceSubnet: network.serviceSubnet },
    etcd:
      external === undefined
        ? { local: { dataDir: '/var/lib/etcd' } }
        : { external: { endpoints: external.endpoints, ...externalEtcdFiles } },
    ...more,
  }
}

function kubeletConfiguration(node: NodeIdentity): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    cgroupDriver: 'cgroupfs',
    cgroupRoot: kubeletCgroup(node.name),
    failCgroupV1: false,
    failSwapOn: false,
    localStorageCapacityIsolation: false,
    evictionHard: {},
    imageGCHighThresholdPercent: 100,
    serverTLSBootstrap: true,
    rotateCertificates: true,
  }
}

function kubeProxyConfiguration(): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'iptables',
    conntrack: { maxPerCore: 0, min: 0 },
  }
}

/**
 * Returns the public key pin of the cluster CA: SHA-256 of its SubjectPublicKeyInfo (RFC 7469, section 2.4), as kubeadm prints
 * it.
 */
function caPin(node: string): string {
  const ca = new X509Certificate(readFileSync(hostPath(node, '/etc/kubernetes/pki/ca.crt')))
  return `sha256:${createHash('sha256')
    .update(ca.publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')}`
}
