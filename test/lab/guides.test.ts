import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { masked, readSteps, withOutputs } from '../guides/transcript.ts'
import { ageCertificates, failPower } from './aging.ts'
import { run } from './command.ts'
import { type Cluster, describeOnCluster, withCluster } from './fixture.ts'
import { kubectlCommand } from './kubectl.ts'
import type { ClusterRequest } from './spec.ts'

// Every command of every guide, in its order, on a fresh cluster: it prints what the guide shows.
// KCERT_GUIDES_WRITE=1 writes what the commands print now into the guides.

interface Guide {
  readonly name: string
  readonly cluster: ClusterRequest
  /** What has happened before the guide is opened. */
  readonly before?: (cluster: Cluster, operator: Operator) => void | Promise<void>
}

const guides: readonly Guide[] = [
  { name: 'tls-in-a-cluster', cluster: { controlPlanes: 1, workers: 1 } },
  { name: 'kubelet-certificates', cluster: { controlPlanes: 1, workers: 1 }, before: reachNodes },
  { name: 'kubelet-serving-tls', cluster: { controlPlanes: 1, workers: 1 }, before: reachNodes },
  { name: 'live-tls', cluster: { controlPlanes: 1, workers: 1, addons: true }, before: reachNodes },
  { name: 'bootstrap', cluster: { controlPlanes: 1, workers: 1 } },
  { name: 'cluster-info', cluster: { controlPlanes: 1, workers: 1 } },
  { name: 'renew-expired', cluster: { controlPlanes: 1, workers: 1 }, before: expire },
]

describeOnCluster('guides', () => {
  test.each(guides)('$name: each command prints what the guide shows', async (one) => {
    const { name, cluster: request, before } = one
    const file = resolve('docs/guides', `${name}.md`)
    const guide = readFileSync(file, 'utf8')
    const steps = readSteps(guide)
    expect(steps.length).toBeGreaterThan(3)
    const outputs = await withCluster(request, async (cluster) => {
      const operator = await makeOperator(cluster.kubeconfig)
      try {
        await before?.(cluster, operator)
        return await follow(steps, operator)
      } finally {
        rmSync(operator.folder, { recursive: true })
      }
    })
    if (isWriting) writeFileSync(file, withOutputs(guide, steps, outputs))
  })
})

const isWriting = process.env.KCERT_GUIDES_WRITE === '1'

interface Operator {
  readonly folder: string
  readonly env: Record<string, string>
}

/** A home of somebody who has the administrator's kubeconfig, kubectl and kcert, and nothing else. */
async function makeOperator(kubeconfig: string): Promise<Operator> {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-guide-'))
  const bin = join(folder, '.bin')
  mkdirSync(bin)
  const kcert = join(bin, 'kcert')
  writeFileSync(kcert, `#!/bin/sh\nexec '${process.execPath}' '${resolve('bin/run.js')}' "$@"\n`)
  chmodSync(kcert, 0o755)
  const [kubectl = ''] = await kubectlCommand([])
  const path = [bin, dirname(kubectl), process.env.PATH].join(':')
  return { folder, env: { PATH: path, HOME: folder, KUBECONFIG: kubeconfig } }
}

/** Nodes by ssh, and an inventory of them. */
function reachNodes(cluster: Cluster, { folder }: Operator): void {
  const ssh = join(folder, '.bin/ssh')
  writeFileSync(ssh, `#!/bin/sh\nexec /usr/bin/ssh -F '${cluster.sshConfig}' "$@"\n`)
  chmodSync(ssh, 0o755)
  const nodes = cluster
    .nodes()
    .map(
      ({ name, role, address }) =>
        `- {name: ${name}, role: ${role}, addresses: [${address}], layout: kubeadm}`,
    )
  const lines = [
    'apiVersion: kcert/v1',
    'kind: Inventory',
    "access: {by: ssh, host: '{node}'}",
    'nodes:',
    ...nodes,
  ]
  writeFileSync(join(folder, 'kcert.yaml'), `${lines.join('\n')}\n`)
}

/** Every leaf has ended, and the nodes have lost their power since. */
async function expire(cluster: Cluster, operator: Operator): Promise<void> {
  reachNodes(cluster, operator)
  ageCertificates(cluster, 'leaves')
  await failPower(cluster)
}

/** Runs the steps and returns what each printed, on standard output and standard error as a terminal would show them. */
async function follow(steps: ReturnType<typeof readSteps>, { folder, env }: Operator): Promise<string[]> {
  const outputs: string[] = []
  for (const { command, printed, exit } of steps) {
    const done = await run(['bash', '-c', `exec 2>&1\n${command}`], { cwd: folder, env, mayFail: true })
    // The home of whoever follows the guide.
    const shown = done.stdout.replaceAll(folder, '/root')
    outputs.push(shown)
    expect(done.code, `${command}\n${shown}`).toBe(exit)
    if (!isWriting) expect(masked(shown), command).toBe(masked(printed))
  }
  return outputs
}
