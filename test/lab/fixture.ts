import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { describe } from 'vitest'
import { countingPods } from './addons.ts'
import { down, type JoinOptions, joinNode, prepare, removeNode, up } from './cluster.ts'
import type { CommandOptions, CommandResult } from './command.ts'
import { retried } from './kubeadm.ts'
import { patientKubectl } from './kubectl.ts'
import { describeError } from './lab-error.ts'
import { whyNotHere } from './machine.ts'
import { enterNode, hostPath, onNode } from './node.ts'
import { type Prober, startProber } from './prober.ts'
import { restore, save, savedKeys } from './save.ts'
import {
  type ClusterRequest,
  type ClusterSpec,
  completeSpec,
  type Minor,
  minorsOf,
  type NodeIdentity,
  network,
  nodeIdentity,
  specName,
} from './spec.ts'
import { folders, paths, readRecord, withLock } from './state.ts'
import { type Steps, stepsOn } from './steps.ts'
import { upgrade } from './upgrade.ts'

/** A real cluster, as a suite uses it. */
export interface Cluster {
  readonly spec: ClusterSpec
  /** The nodes as they are now, control planes first unless some were joined later. */
  nodes(): NodeIdentity[]
  /** An administrator's kubeconfig for use on this machine; it points at the load balancer. */
  readonly kubeconfig: string
  /** `host:port` of the load balancer. */
  readonly endpoint: string
  /** `ssh -F <sshConfig> cp1` is a root shell on cp1. */
  readonly sshConfig: string
  /** The argument vector that runs what follows it on a node, for kcert's `command` transport. */
  enter(node: string): string[]
  onNode(node: string, argv: readonly string[], options?: CommandOptions): Promise<CommandResult>
  /** Where a file of a node is on this machine. */
  hostPath(node: string, file: string): string
  /** Asked again where the API server is away for a moment, unless the call may fail. */
  kubectl(args: readonly string[], options?: CommandOptions): Promise<CommandResult>
  /** Name, node and URL of the pods that count their own failures; there are some with `addons`. */
  countingPods: typeof countingPods
  /** Starts the prober; `flags` go to its command line. */
  probe(flags?: readonly string[]): Promise<Prober>
  save(name: string): Promise<void>
  restore(name: string): Promise<void>
  join(node: string, options?: JoinOptions): Promise<void>
  remove(node: string): Promise<void>
  /** `kubeadm upgrade` of these nodes, one after the other; without names of all that are behind. */
  upgrade(to: Minor, ...nodes: string[]): Promise<void>
}

/** A suite that needs a cluster: runs where CI or KCERT_LAB=1 is set, else it is skipped and says in one line how to have it. */
export function describeOnCluster(name: string, body: () => void): void {
  const reason = whyNotHere()
  if (reason === undefined) {
    describe(name, body)
    return
  }
  if (!reported.has(reason)) process.stderr.write(`${reason}\n`)
  reported.add(reason)
  describe.skip(name, body)
}

const reported = new Set<string>()

/**
 * Opens a cluster as a fresh `up` leaves it, and takes it down when `work` ends. The first suite that asks for a kind of
 * cluster brings it up and saves it; the others get it by restore. Suites wait for one another.
 */
export async function withCluster<T>(
  request: ClusterRequest,
  work: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const cluster = await openCluster(request)
  try {
    return await work(cluster)
  } finally {
    await cluster.close()
  }
}

/** The same for a suite's beforeAll and afterAll: whoever opens must close. */
export async function openCluster(request: ClusterRequest): Promise<Cluster & { close(): Promise<void> }> {
  const spec = completeSpec(request)
  const steps = stepsOn((line) => process.stderr.write(`lab: ${line}\n`))
  const { promise: closed, resolve: release } = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<void>()
  const held = withLock(
    join(folders.state, 'suite.lock'),
    'the cluster of the tests',
    60 * 60_000,
    async () => {
      try {
        await fresh(spec, steps)
        opened.resolve()
        await closed
      } finally {
        // A failed suite's cluster can be looked at: KCERT_LAB_KEEP=1 leaves it up.
        if (process.env.KCERT_LAB_KEEP !== '1') await down(steps)
      }
    },
  )
  held.catch(opened.reject)
  await opened.promise
  const close = async (): Promise<void> => {
    release()
    await held
  }
  return { ...clusterHandle(spec, steps), close }
}

/** A cluster of that kind in its first state: restored where one is saved, else brought up and saved. */
async function fresh(spec: ClusterSpec, steps: Steps): Promise<void> {
  const base = `base-${specName(spec)}`
  if (isDeepStrictEqual(savedKeys(base), (await prepare(minorsOf(spec), steps)).keys)) {
    try {
      return await restore(base, steps)
    } catch (error) {
      steps.note(`${base} is not used again: ${describeError(error)}`)
    }
  }
  await retried(
    2,
    async () => {
      await down(steps)
      await up(spec, steps)
    },
    async (error) => steps.note(`${specName(spec)} is brought up once more: ${describeError(error)}`),
  )
  await save(base, steps)
}

function clusterHandle(spec: ClusterSpec, steps: Steps): Cluster {
  return {
    spec,
    nodes: () => (readRecord()?.nodes ?? []).map(nodeIdentity),
    kubeconfig: paths.kubeconfig,
    endpoint: `${network.loadBalancer}:6443`,
    sshConfig: paths.sshConfig,
    enter: enterNode,
    onNode,
    hostPath,
    kubectl: patientKubectl,
    countingPods,
    probe: startProber,
    save: (name) => save(name, steps),
    restore: (name) => restore(name, steps),
    join: (node, options) => joinNode(node, steps, options),
    remove: (node) => removeNode(node, steps),
    upgrade: (to, ...nodes) => upgrade(to, nodes, steps),
  }
}
