import { join } from 'node:path'
import { buildBinaries } from './binaries.ts'
import { type CommandOptions, type CommandResult, run, sleep } from './command.ts'
import { allReleases, defaultMinor } from './spec.ts'
import { type ClusterRecord, folders, paths, readRecord } from './state.ts'
import { silentSteps } from './steps.ts'

/** Runs the cluster's own kubectl as administrator, through the load balancer. */
export async function kubectl(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return run(await kubectlCommand(args), options)
}

/** The error of a call when the API server is briefly unavailable, as on a busy machine, and has refused nothing. */
const isAway =
  /(?:connection|was) refused|connection reset|connection lost|\bEOF\b|TLS handshake timeout|i\/o timeout|deadline exceeded|Unable to connect|unable to handle the request|etcdserver: (?:request timed out|leader changed)/

/**
 * Runs kubectl and retries for two minutes while the API server is briefly unavailable. If the first call took effect but its
 * response was lost, the second call finds the work done.
 */
export async function patientKubectl(
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const deadline = performance.now() + 120_000
  for (let attempt = 1; ; attempt++) {
    try {
      return await kubectl(args, options)
    } catch (error) {
      const { message } = error as Error
      const isDone =
        (args.includes('create') && message.includes('AlreadyExists')) ||
        (args.includes('delete') && message.includes('NotFound'))
      if (attempt > 1 && isDone) return { code: 0, stdout: '', stderr: message }
      if (!isAway.test(message) || performance.now() > deadline) throw error
      await sleep(500)
    }
  }
}

export async function kubectlCommand(args: readonly string[]): Promise<string[]> {
  const record = readRecord()
  const key =
    record === undefined ? (await buildBinaries(defaultMinor, silentSteps)).key : newestKey(record.binaries)
  return [join(folders.cache, key, 'bin/kubectl'), '--kubeconfig', paths.kubeconfig, ...args]
}

/** Returns the key of the newest binaries of a cluster's nodes, which provide kubectl and the prober. */
export function newestKey(keys: ClusterRecord['binaries']): string {
  return keys[allReleases.findLast((minor) => keys[minor] !== undefined)!]!
}

/** Returns the items of `kubectl get … -o json`. */
export async function list<T = KubeObject>(args: readonly string[]): Promise<T[]> {
  const { stdout } = await patientKubectl(['get', ...args, '-o', 'json', '--request-timeout=15s'])
  return (JSON.parse(stdout) as { items: T[] }).items
}

export interface KubeObject {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly creationTimestamp: string
    readonly ownerReferences?: readonly { readonly kind: string }[]
  }
}

export interface Condition {
  readonly type: string
  readonly status: string
  readonly message?: string
}

export interface KubeNode extends KubeObject {
  readonly status: { readonly conditions?: readonly Condition[] }
}

export interface Pod extends KubeObject {
  readonly spec: { readonly nodeName?: string }
  readonly status: {
    readonly phase: string
    readonly podIP?: string
    readonly conditions?: readonly Condition[]
    readonly containerStatuses?: readonly {
      readonly state: { readonly running?: { readonly startedAt: string } }
    }[]
  }
}

export interface Lease extends KubeObject {
  readonly spec: { readonly holderIdentity?: string; readonly renewTime?: string }
}

interface SigningRequest extends KubeObject {
  readonly spec: { readonly signerName: string }
  readonly status: { readonly conditions?: readonly Condition[] }
}

export function isTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false
}

/** Approves the nodes' pending requests for serving certificates, as an operator of this lab does. */
export async function approveServingRequests(): Promise<void> {
  const requests = await list<SigningRequest>(['certificatesigningrequests'])
  const waiting = requests
    .filter(
      ({ spec, status }) =>
        spec.signerName === 'kubernetes.io/kubelet-serving' && status.conditions === undefined,
    )
    .map(({ metadata }) => metadata.name)
  if (waiting.length > 0) await patientKubectl(['certificate', 'approve', ...waiting])
}
