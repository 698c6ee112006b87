import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from './command.ts'
import type { Cluster } from './fixture.ts'
import { LabError } from './lab-error.ts'
import { folders } from './state.ts'

// A rotation where nodes allow no login: kcert reaches them through Jobs whose image is kcert's own, as `npm run image` builds it.

/** Loads the image into the container runtime of each node. Returns the flags of `discover` that use it. */
export async function jobsOnNodes(cluster: Cluster): Promise<string[]> {
  const work = mkdtempSync(join(tmpdir(), 'kcert-jobs-'))
  try {
    const layout = join(work, 'image')
    const build = ['scripts/image.ts', '--arch', process.arch, '--out', layout]
    await run([process.execPath, ...build], { cwd: folders.checkout, timeoutMs: 600_000 })
    await run(['tar', '-cf', join(work, 'image.tar'), '-C', layout, '.'])
    const archive = readFileSync(join(work, 'image.tar'))
    const load = ['ctr', '-n', 'k8s.io', 'images', 'import', '-']
    for (const { name } of cluster.nodes())
      await cluster.onNode(name, load, { input: archive, timeoutMs: 120_000 })
    const [index] = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests
    return ['--access', `jobs:${index.annotations['io.containerd.image.name']}`]
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Returns the private keys of all nodes: a line from the middle of each, which is part of no certificate. */
export function keyLines(cluster: Cluster): ReadonlySet<string> {
  const lines = new Set<string>()
  for (const { name } of cluster.nodes()) {
    for (const folder of ['/etc/kubernetes', '/var/lib/kcert', '/var/lib/kubelet/pki']) {
      for (const path of globSync('**', { cwd: cluster.hostPath(name, folder) })) {
        const file = cluster.hostPath(name, `${folder}/${path}`)
        if (!statSync(file, { throwIfNoEntry: false })?.isFile()) continue
        for (const [, pem = ''] of readFileSync(file, 'latin1').matchAll(privateKey)) {
          const own = pem.trim().split('\n')
          // The first line of a key begins as that of every key of its type.
          lines.add(own[Math.floor(own.length / 2)] ?? '')
        }
      }
    }
  }
  lines.delete('')
  return lines
}

const privateKey = /-----BEGIN [A-Z ]*PRIVATE KEY-----\n([A-Za-z0-9+/=\n]+)-----END/g

/**
 * Returns how many keys the files of etcd were searched for: its database with the pages of deleted objects, and its log. Throws if
 * one contains a key, as PEM, as DER or as base64 of PEM.
 */
export function searchEtcd(cluster: Cluster, keys: ReadonlySet<string>): number {
  if (keys.size === 0) throw new LabError('no key was found on the nodes')
  for (const { name, role } of cluster.nodes()) {
    if (role !== 'control-plane') continue
    const member = cluster.hostPath(name, '/var/lib/etcd/member')
    for (const path of globSync('{snap/db,wal/*.wal}', { cwd: member })) {
      const bytes = readFileSync(join(member, path))
      for (const line of keys) {
        const forms = [Buffer.from(line), Buffer.from(line, 'base64'), ...inBase64(line)]
        if (forms.some((form) => bytes.includes(form)))
          throw new LabError(`${name}: ${path} of etcd contains a private key`)
      }
    }
  }
  return keys.size
}

/** Base64 has three forms of a text, by the number of bytes before it. The characters at both ends depend on the bytes around it. */
function inBase64(line: string): Buffer[] {
  return [0, 1, 2].map((before) => {
    const text = Buffer.from(' '.repeat(before) + line).toString('base64')
    return Buffer.from(text.slice(4, -4))
  })
}

/** Returns the namespaces and policies of Jobs that are left. */
export async function leftOfJobs(cluster: Cluster): Promise<string[]> {
  const kinds = 'namespaces,validatingadmissionpolicies,validatingadmissionpolicybindings'
  const { stdout } = await cluster.kubectl([
    'get',
    kinds,
    '-l',
    'app.kubernetes.io/name=kcert-nodes',
    '-o',
    'name',
  ])
  return stdout.split('\n').filter((name) => name !== '')
}
