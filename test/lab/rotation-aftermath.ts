import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { KeyPair } from './certificates.ts'
import type { Cluster } from './fixture.ts'

// What a rotation leaves behind, asked of nodes and cluster without kcert.

const manifests = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'etcd']

/** The cluster CA's certificate, as it lies on the first control plane now. */
export function oldCaOf(cluster: Cluster): string {
  const file = cluster.spec.flavour === 'plain' ? '/etc/kubernetes/ssl/ca.pem' : '/etc/kubernetes/pki/ca.crt'
  return readFileSync(cluster.hostPath('cp1', file), 'utf8')
}

/** The cluster CA's private key, as it lies on the first control plane now. */
export function oldKeyOf(cluster: Cluster): string {
  return readFileSync(cluster.hostPath('cp1', '/etc/kubernetes/pki/ca.key'), 'utf8')
}

/** Files of every node, kcert's own among them, that hold a private key. */
export function holdersOfKey(cluster: Cluster, key: string): readonly string[] {
  const needle = base64Of(key)
  return filesOfNodes(cluster, [...kubernetesFolders, '/var/lib/kcert']).flatMap(({ name, path, file }) =>
    holds(readFileSync(file, 'latin1'), needle) ? [`${name}:${path}`] : [],
  )
}

/** The bytes of every static pod's manifest, by node and name. */
export function staticPods(cluster: Cluster): Record<string, string> {
  const found: Record<string, string> = {}
  for (const { name, role } of cluster.nodes()) {
    if (role !== 'control-plane') continue
    for (const manifest of manifests) {
      const file = cluster.hostPath(name, `/etc/kubernetes/manifests/${manifest}.yaml`)
      found[`${name}/${manifest}`] = readFileSync(file, 'utf8')
    }
  }
  return found
}

/** Every file below /etc/kubernetes and the kubelet's pki of every node, links left out: its bytes and mode. */
export function nodeFiles(cluster: Cluster): Record<string, string> {
  const found: Record<string, string> = {}
  for (const { name, path, file } of filesOfNodes(cluster)) {
    const mode = (statSync(file).mode & 0o777).toString(8)
    found[`${name}:${path} ${mode}`] = readFileSync(file, 'latin1')
  }
  return found
}

/** Where these files are on this machine. */
export function nodeFileNames(cluster: Cluster): string[] {
  return filesOfNodes(cluster).map(({ file }) => file)
}

const kubernetesFolders = ['/etc/kubernetes', '/var/lib/kubelet/pki']

function filesOfNodes(
  cluster: Cluster,
  folders: readonly string[] = kubernetesFolders,
): { name: string; path: string; file: string }[] {
  return cluster.nodes().flatMap(({ name }) =>
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

/** Names of files and objects that hold a CA, as PEM or inside base64. */
export async function holdersOf(cluster: Cluster, certificate: string): Promise<readonly string[]> {
  const needle = base64Of(certificate)
  const files = Object.entries(nodeFiles(cluster)).filter(([, text]) => holds(text, needle))
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

/** What stands between the lines of a PEM text. */
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

/** Without what `kubectl apply` remembers of its owner's file: nobody trusts by that. */
function inForce(object: KubeObject): object {
  const { 'kubectl.kubernetes.io/last-applied-configuration': _, ...annotations } =
    object.metadata.annotations ?? {}
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/** Every string in a value. */
function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : []
}

/** True when the text holds this base64 of a certificate, its lines joined, or a base64 word of it that decodes to such a text. */
function holds(text: string, needle: string): boolean {
  if (text.replaceAll(/\s/g, '').includes(needle)) return true
  const words = text.match(/[A-Za-z0-9+/=]{400,}/g) ?? []
  return words.some((word) =>
    Buffer.from(word, 'base64').toString('latin1').replaceAll(/\s/g, '').includes(needle),
  )
}

/**
 * What each server answers to a client certificate of the old CA, by node and program: its status, and that it took the client for
 * nobody in particular where it says so.
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
      const asks = ['-sk', '--cert', '/root/old.crt', '--key', '/root/old.key', '-m', '10']
      const shows = ['-w', '\n%{http_code}']
      let stdout = ''
      // 000: no answer, as of the kubelet of a node that has just joined. It is asked until it answers.
      for (let attempt = 1; attempt <= 60 && /^(?:.*\n000)?$/s.test(stdout); attempt++) {
        if (attempt > 1) await setTimeout(1000)
        const curl = ['curl', ...asks, ...shows, `https://${place}`]
        stdout = (await cluster.onNode(name, curl, { mayFail: true })).stdout
      }
      const status = stdout.slice(stdout.lastIndexOf('\n') + 1)
      const isNobody = status === '403' && stdout.includes('system:anonymous')
      answers[`${name}/${server}`] = isNobody ? '403 to nobody' : status
    }
    await cluster.onNode(name, ['rm', '/root/old.crt', '/root/old.key'])
  }
  return answers
}
