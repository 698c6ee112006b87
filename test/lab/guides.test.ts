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

// Runs every command of every guide in order on a new cluster, and compares the output with the guide. KCERT_GUIDES_WRITE=1
// writes the current output into the guides.

interface Guide {
  readonly name: string
  readonly cluster: ClusterRequest
  /** Prepares the situation in which the guide starts. */
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
  test.each(guides)('$name: each command prints the output in the guide', async (one) => {
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

/** Creates the home of a user who has only the administrator's kubeconfig, kubectl and kcert. */
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

/** Sets up ssh access to nodes, and their inventory. */
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

/** Expires every leaf, and then simulates a power failure of the nodes. */
async function expire(cluster: Cluster, operator: Operator): Promise<void> {
  reachNodes(cluster, operator)
  ageCertificates(cluster, 'leaves')
  await failPower(cluster)
}

/** Runs the steps and returns the output of each, with standard output and standard error as on a terminal. */
async function follow(steps: ReturnType<typeof readSteps>, { folder, env }: Operator): Promise<string[]> {
  const outputs: string[] = []
  for (const { command, printed, exit } of steps) {
    const done = await run(['bash', '-c', `exec 2>&1\n${command}`], { cwd: folder, env, mayFail: true })
    // The home of the user who follows the guide.
    const shown = done.stdout.replaceAll(folder, '/root')
    outputs.push(shown)
    expect(done.code, `${command}\n${shown}`).toBe(exit)
    if (!isWriting) expect(masked(shown), command).toBe(masked(printed))
  }
  return outputs
}
