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
  isNode,
  type Machine,
  type Minor,
  machineIdentity,
  minorsOf,
  type NodeIdentity,
  network,
  specName,
} from './spec.ts'
import { folders, paths, readRecord, withLock } from './state.ts'
import { type Steps, stepsOn } from './steps.ts'
import { upgrade } from './upgrade.ts'

/** A real cluster for a suite. */
export interface Cluster {
  readonly spec: ClusterSpec
  /** The current nodes, control planes first unless some were joined later. */
  nodes(): NodeIdentity[]
  /** The machines of external etcd, which are no nodes. */
  etcdMachines(): Machine[]
  /** An administrator's kubeconfig for this machine. It uses the load balancer. */
  readonly kubeconfig: string
  /** `host:port` of the load balancer. */
  readonly endpoint: string
  /** `ssh -F <sshConfig> cp1` is a root shell on cp1. */
  readonly sshConfig: string
  /** Returns the argument vector that runs the command after it on a node, for kcert's `command` transport. */
  enter(node: string): string[]
  onNode(node: string, argv: readonly string[], options?: CommandOptions): Promise<CommandResult>
  /** Returns the path on this machine of a node's file. */
  hostPath(node: string, file: string): string
  /** Retries while the API server is briefly unavailable, unless the call may fail. */
  kubectl(args: readonly string[], options?: CommandOptions): Promise<CommandResult>
  /** Name, node and URL of the pods that count their own failures, which exist with `addons`. */
  countingPods: typeof countingPods
  /** Starts the prober with additional `flags`. */
  probe(flags?: readonly string[]): Promise<Prober>
  save(name: string): Promise<void>
  restore(name: string): Promise<void>
  join(node: string, options?: JoinOptions): Promise<void>
  remove(node: string): Promise<void>
  /** Runs `kubeadm upgrade` on these nodes, one by one; without names, on all older nodes. */
  upgrade(to: Minor, ...nodes: string[]): Promise<void>
}

/**
 * A suite that needs a cluster. It runs where CI or KCERT_LAB=1 is set. Otherwise it is skipped, with one line on how to enable
 * it.
 */
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
 * Opens a cluster in the state after a new `up`, and removes it when `work` ends. The first suite that needs a kind of cluster
 * starts and saves it; later ones restore it. Suites wait for one another.
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

/** The same for a suite's beforeAll and afterAll. The caller must close it. */
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
        // KCERT_LAB_KEEP=1 keeps the cluster of a failed suite for inspection.
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

/** Provides a cluster of that kind in its initial state: restored if it is saved, else started and saved. */
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
  const machines = (): Machine[] => (readRecord()?.nodes ?? []).map(machineIdentity)
  return {
    spec,
    nodes: () => machines().filter(isNode),
    etcdMachines: () => machines().filter((machine) => !isNode(machine)),
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
