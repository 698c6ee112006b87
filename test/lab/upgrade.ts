import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildBinaries } from './binaries.ts'
import { alone, existing } from './cluster.ts'
import { run } from './command.ts'
import { archivesOf } from './images.ts'
import { LabError } from './lab-error.ts'
import { hostPath, onNode } from './node.ts'
import { waitForApiServers, waitForNodes, waitForPods } from './readiness.ts'
import { allReleases, type Minor, nodeIdentity, releases } from './spec.ts'
import { type ClusterRecord, paths, writeRecord } from './state.ts'
import type { Steps } from './steps.ts'

/** Path of the upgraded programs on a node, until its next boot. */
const packages = '/var/cache/upgrade'

/**
 * Upgrades nodes of the running cluster to the next minor version, one at a time and control planes first: packages, `kubeadm
 * upgrade`, the kubelet. Without names, upgrades all older nodes, which resumes an interrupted upgrade.
 */
export async function upgrade(to: Minor, names: readonly string[], steps: Steps): Promise<void> {
  const binaries = await buildBinaries(to, steps)
  await alone(async () => {
    const upgraded = namesToUpgrade(existing(), to, names)
    if (upgraded.length === 0) return
    // kubeadm deploys the new kube-proxy and CoreDNS to every node when the last API server is upgraded.
    await steps.step(`images of ${to}`, () => importImages(existing().nodes, to, binaries.folder))
    for (const name of upgraded) {
      const record = existing()
      await steps.step(`packages of ${to} on ${name}`, () => install(name, binaries.folder))
      const isFirst = !Object.values(record.minors).includes(to)
      await steps.step(`kubeadm upgrade ${isFirst ? 'apply' : 'node'} on ${name}`, () =>
        kubeadmUpgrade(name, to, isFirst),
      )
      await onNode(name, ['systemctl', 'restart', 'kubelet'])
      if (nodeIdentity(name).role === 'control-plane') await waitForApiServers([name], record.spec.flavour)
      await steps.step(`${name} Ready`, () => waitForNodes([name]))
      writeRecord(recordAfter(record, name, to, binaries.key))
    }
    await steps.step('pods Ready', () => waitForPods())
  })
}

function namesToUpgrade(record: ClusterRecord, to: Minor, names: readonly string[]): readonly string[] {
  if (record.spec.flavour === 'plain') {
    throw new LabError('only a kubeadm cluster is upgraded', { why: 'the plain flavour has no kubeadm' })
  }
  const unknown = names.filter((name) => !record.nodes.includes(name))
  if (unknown.length > 0) {
    throw new LabError(`not a node of the cluster: ${unknown.join(', ')}`, { next: 'npm run lab -- status' })
  }
  const asked = names.length === 0 ? record.nodes : names
  return asked.filter((name) => record.minors[name] !== to).toSorted((one, other) => rank(one) - rank(other))
}

function rank(name: string): number {
  return nodeIdentity(name).role === 'control-plane' ? 0 : 1
}

async function importImages(nodes: readonly string[], to: Minor, folder: string): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'kcert-upgrade-'))
  try {
    for await (const archive of archivesOf(to, folder, work)) {
      const images = readFileSync(archive)
      const argv = ['ctr', '-n', 'k8s.io', 'images', 'import', '-']
      for (const name of nodes) await onNode(name, argv, { input: images, timeoutMs: 120_000 })
    }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Running processes continue with the old files, as after `apt-get install`. */
async function install(name: string, folder: string): Promise<void> {
  const target = hostPath(name, packages)
  rmSync(target, { recursive: true, force: true })
  await run(['cp', '-a', '--reflink=auto', folder, target])
  await onNode(name, ['mount', '--bind', packages, '/usr/local/bin'])
}

async function kubeadmUpgrade(name: string, to: Minor, isFirst: boolean): Promise<void> {
  const command = isFirst ? ['apply', releases[to].kubernetes, '--yes'] : ['node']
  const patches = existsSync(hostPath(name, '/root/patches')) ? ['--patches', '/root/patches'] : []
  const { code, stdout, stderr } = await onNode(
    name,
    ['kubeadm', 'upgrade', ...command, '--ignore-preflight-errors=all', ...patches],
    { timeoutMs: 420_000, mayFail: true },
  )
  if (code === 0) return
  throw new LabError(`kubeadm upgrade gave up on ${name}`, {
    why: `${stdout}${stderr}`.trimEnd().split('\n').slice(-8).join('\n'),
    next: `read var/log/kubelet.log in ${paths.node(name)}`,
  })
}

/** A node that joins later gets the minor version that all nodes of its role have. */
function recordAfter(record: ClusterRecord, name: string, to: Minor, key: string): ClusterRecord {
  const { role } = nodeIdentity(name)
  const minors = { ...record.minors, [name]: to }
  const isWhole = record.nodes.every((one) => nodeIdentity(one).role !== role || minors[one] === to)
  const kubernetes = isWhole ? { ...record.spec.kubernetes, [role]: to } : record.spec.kubernetes
  const used = allReleases.filter((minor) => Object.values(minors).includes(minor))
  const keys = { ...record.binaries, [to]: key }
  return {
    ...record,
    spec: { ...record.spec, kubernetes },
    minors,
    binaries: Object.fromEntries(used.map((minor) => [minor, keys[minor]!])),
  }
}
