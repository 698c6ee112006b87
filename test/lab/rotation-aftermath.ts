import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { KeyPair } from './certificates.ts'
import type { Cluster } from './fixture.ts'

// The remains of a rotation, read from nodes and cluster without kcert.

const manifests = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'etcd']

/** Returns the cluster CA's current certificate on the first control plane. */
export function oldCaOf(cluster: Cluster): string {
  const file = cluster.spec.flavour === 'plain' ? '/etc/kubernetes/ssl/ca.pem' : '/etc/kubernetes/pki/ca.crt'
  return readFileSync(cluster.hostPath('cp1', file), 'utf8')
}

/** Returns the cluster CA's current private key on the first control plane. */
export function oldKeyOf(cluster: Cluster): string {
  return readFileSync(cluster.hostPath('cp1', '/etc/kubernetes/pki/ca.key'), 'utf8')
}

/** Returns files of every node that contain a private key, including kcert's own. */
export function holdersOfKey(cluster: Cluster, key: string): readonly string[] {
  const needle = base64Of(key)
  return filesOfNodes(cluster, [...kubernetesFolders, '/var/lib/kcert']).flatMap(({ name, path, file }) =>
    holds(readFileSync(file, 'latin1'), needle) ? [`${name}:${path}`] : [],
  )
}

/** Returns the bytes of every static pod's manifest, by node and name. */
export function staticPods(cluster: Cluster): Record<string, string> {
  const found: Record<string, string> = {}
  for (const { name, role } of cluster.nodes()) {
    if (role !== 'control-plane') continue
    for (const manifest of manifests) {
      if (manifest === 'etcd' && cluster.spec.etcdMachines > 0) continue
      const file = cluster.hostPath(name, `/etc/kubernetes/manifests/${manifest}.yaml`)
      found[`${name}/${manifest}`] = readFileSync(file, 'utf8')
    }
  }
  return found
}

/** Returns bytes and mode of every file below /etc/kubernetes and /etc/etcd and in the kubelet's pki folder of every machine, without links. */
export function nodeFiles(cluster: Cluster): Record<string, string> {
  const found: Record<string, string> = {}
  for (const { name, path, file } of filesOfNodes(cluster, [...kubernetesFolders, '/etc/etcd'])) {
    const mode = (statSync(file).mode & 0o777).toString(8)
    found[`${name}:${path} ${mode}`] = readFileSync(file, 'latin1')
  }
  return found
}

/** Returns the paths of these files on this machine. */
export function nodeFileNames(cluster: Cluster): string[] {
  return filesOfNodes(cluster).map(({ file }) => file)
}

const kubernetesFolders = ['/etc/kubernetes', '/var/lib/kubelet/pki']

function filesOfNodes(
  cluster: Cluster,
  folders: readonly string[] = kubernetesFolders,
): { name: string; path: string; file: string }[] {
  return [...cluster.nodes(), ...cluster.etcdMachines()].flatMap(({ name }) =>
    folders.flatMap((folder) => {
      const root = cluster.hostPath(name, folder)
      if (!existsSync(root)) return []
      return readdirSync(root, { recursive: true, withFileTypes: true }).flatMap((entry) => {
        if (!entry.isFile()) return []
        const file = join(entry.parentPath, entry.name)
        return [{ name, path: `${folder}${file.slice(root.length)}`, file }]
      })
    }),
  )
}

// kubeadm upgrade keeps replaced files, including etcd's data, in a folder that nothing reads.
const upgradeBackup = /^\w+:\/etc\/kubernetes\/tmp\/kubeadm-backup-/

/** Returns names of files and objects that contain a CA, as PEM or in base64. */
export async function holdersOf(cluster: Cluster, certificate: string): Promise<readonly string[]> {
  const needle = base64Of(certificate)
  const files = Object.entries(nodeFiles(cluster)).filter(
    ([name, text]) => !upgradeBackup.test(name) && holds(text, needle),
  )
  const kinds = [
    'configmaps,secrets,validatingwebhookconfigurations,mutatingwebhookconfigurations,apiservices,customresourcedefinitions',
    '--all-namespaces',
    '-o',
    'json',
  ]
  const { stdout } = await cluster.kubectl(['get', ...kinds])
  const { items } = JSON.parse(stdout) as { items: KubeObject[] }
  const objects = items.filter((object) => texts(inForce(object)).some((text) => holds(text, needle)))
  return [
    ...files.map(([name]) => name),
    ...objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`),
  ]
}

/** Returns the lines between those of the armour in a PEM text. */
function base64Of(pem: string): string {
  return pem.replaceAll(/-----[^\n]*-----|\s/g, '')
}

interface KubeObject {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly annotations?: Readonly<Record<string, string>>
  }
}

/** Returns the object without `kubectl apply`'s annotation of the last applied configuration, which no client trusts. */
function inForce(object: KubeObject): object {
  const { 'kubectl.kubernetes.io/last-applied-configuration': _, ...annotations } =
    object.metadata.annotations ?? {}
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/** Returns every string in a value. */
function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : []
}

/**
 * Returns true when the text contains this base64 of a certificate, with its lines joined, or a base64 word that decodes to such
 * a text.
 */
function holds(text: string, needle: string): boolean {
  if (text.replaceAll(/\s/g, '').includes(needle)) return true
  const words = text.match(/[A-Za-z0-9+/=]{400,}/g) ?? []
  return words.some((word) =>
    Buffer.from(word, 'base64').toString('latin1').replaceAll(/\s/g, '').includes(needle),
  )
}

/**
 * Returns each server's response to a client certificate of the old CA, by node and program: its status, and that the client is
 * anonymous where the response shows it.
 */
export async function answersToOldCertificate(
  cluster: Cluster,
  old: KeyPair,
): Promise<Record<string, string>> {
  const answers: Record<string, string> = {}
  for (const { name, role, address } of cluster.nodes()) {
    writeFileSync(cluster.hostPath(name, '/root/old.crt'), old.certificate)
    writeFileSync(cluster.hostPath(name, '/root/old.key'), old.key, { mode: 0o600 })
    const servers = [
      ['kubelet', `${address}:10250/pods`],
      ...(role === 'control-plane'
        ? [
            ['kube-apiserver', `${address}:6443/api/v1/nodes`],
            ['kube-controller-manager', '127.0.0.1:10257/metrics'],
            ['kube-scheduler', '127.0.0.1:10259/metrics'],
          ]
        : []),
    ]
    for (const [server, place] of servers) {
      const asks = ['--cert', '/root/old.crt', '--key', '/root/old.key']
      const { status, body } = await answerOnNode(cluster, name, [...asks, `https://${place}`])
      const isNobody = status === '403' && body.includes('system:anonymous')
      answers[`${name}/${server}`] = isNobody ? '403 to nobody' : status
    }
    await cluster.onNode(name, ['rm', '/root/old.crt', '/root/old.key'])
  }
  return answers
}

/** Returns the status with which each API server responds to a token, by node. */
export async function answersToToken(cluster: Cluster, token: string): Promise<Record<string, string>> {
  const answers: Record<string, string> = {}
  for (const { name, role, address } of cluster.nodes()) {
    if (role !== 'control-plane') continue
    const header = cluster.hostPath(name, '/root/old-token')
    writeFileSync(header, `Authorization: Bearer ${token.trim()}\n`, { mode: 0o600 })
    const asks = ['-H', '@/root/old-token', `https://${address}:6443/api/v1/nodes`]
    answers[name] = (await answerOnNode(cluster, name, asks)).status
    rmSync(header)
  }
  return answers
}

/** Returns the response to curl on a node. Repeats the request until there is one, as from the kubelet of a node that just joined. */
async function answerOnNode(
  cluster: Cluster,
  node: string,
  asks: readonly string[],
): Promise<{ status: string; body: string }> {
  const curl = ['curl', '-sk', '-m', '10', '-w', '\n%{http_code}', ...asks]
  for (let attempt = 1; ; attempt++) {
    const { stdout } = await cluster.onNode(node, curl, { mayFail: true })
    const status = stdout.slice(stdout.lastIndexOf('\n') + 1)
    // 000: no response.
    if ((status !== '' && status !== '000') || attempt === 60) return { status, body: stdout }
    await setTimeout(1000)
  }
}
