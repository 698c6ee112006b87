import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { RotationRunbook } from '../../src/rotation/report.ts'
import { apply } from './addons.ts'
import type { Cluster } from './fixture.ts'
import { kubectlCommand } from './kubectl.ts'
import { LabError } from './lab-error.ts'
import { type RotationOperator, waiversOfLab } from './rotation-operator.ts'

// A rotation where nodes may not be changed remotely: kcert writes scripts, and operators copy them to their nodes and run them.

const chroot = 'import os, sys; os.chroot("/host"); os.chdir("/"); os.execvp(sys.argv[1], sys.argv[1:])'

/**
 * Creates a pod on each node for reading only: its disk is mounted read-only, and no login is needed. Returns the flags of
 * `discover` that use these pods.
 */
export async function readersOnNodes(cluster: Cluster): Promise<string[]> {
  const pods = cluster.nodes().map(({ name }) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `kcert-reader-${name}`, namespace: 'kube-system' },
    spec: {
      nodeName: name,
      hostPID: true,
      hostNetwork: true,
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      tolerations: [{ operator: 'Exists' }],
      volumes: [{ name: 'host', hostPath: { path: '/' } }],
      containers: [
        {
          name: 'reader',
          image: 'lab.local/client-python:1',
          imagePullPolicy: 'Never',
          command: ['/usr/bin/python3', '-c', 'import signal; signal.pause()'],
          securityContext: { privileged: true },
          // Volumes of pods are mounts that change. The pod must see new ones.
          volumeMounts: [
            { name: 'host', mountPath: '/host', readOnly: true, mountPropagation: 'HostToContainer' },
          ],
        },
      ],
    },
  }))
  await apply(pods)
  const names = pods.map(({ metadata }) => `pod/${metadata.name}`)
  await cluster.kubectl(['-n', 'kube-system', 'wait', ...names, '--for=condition=Ready', '--timeout=60s'])
  const exec = ['-n', 'kube-system', 'exec', '-qi', 'kcert-reader-{node}', '--', '/usr/bin/python3', '-c']
  const words = await kubectlCommand(exec)
  return ['--read-only', '--access', `command:${words.join(' ')} '${chroot}'`]
}

/** The exit code of a phase when scripts are next. */
const scriptsNext = 3
/** A phase that needs more rounds than this loops forever. */
const mostRounds = 12

/** Completes one phase, alternating between kcert and the nodes. Returns the number of scripts that ran. */
export async function runPhaseByHand(
  cluster: Cluster,
  operator: RotationOperator,
  phase: number,
): Promise<number> {
  let scripts = 0
  for (let round = 1; round <= mostRounds; round += 1) {
    const command = ['--phase', String(phase), '--by-runbook', '--yes', ...waiversOfLab]
    const { code, stderr } = await operator.kcert(command)
    if (code === 0) return scripts
    if (code !== scriptsNext) throw new LabError(`phase ${phase}: exit ${code}`, { why: stderr.slice(-3000) })
    const ran = await runScripts(cluster, operator, phase, round)
    if (ran === 0)
      throw new LabError(`phase ${phase}: neither held nor had scripts`, { why: stderr.slice(-3000) })
    scripts += ran
  }
  throw new LabError(`phase ${phase}: not held after ${mostRounds} rounds of scripts`)
}

async function runScripts(
  cluster: Cluster,
  operator: RotationOperator,
  phase: number,
  round: number,
): Promise<number> {
  const folder = `phase-${phase}-round-${round}`
  const written = await operator.must([
    'runbook',
    folder,
    '--phase',
    String(phase),
    ...waiversOfLab,
    '-o',
    'json',
  ])
  const { scripts } = JSON.parse(written.stdout) as RotationRunbook
  for (const { node, path } of scripts) {
    const carried = `/root/${folder}`
    const place = cluster.hostPath(node, carried)
    mkdirSync(place, { mode: 0o700 })
    cpSync(join(operator.folder, folder, dirname(path)), place, { recursive: true })
    await cluster.onNode(node, ['sh', '-c', `cd ${carried} && sh run.sh`])
    rmSync(place, { recursive: true })
  }
  return scripts.length
}
