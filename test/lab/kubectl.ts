import { join } from 'node:path'
import { buildBinaries } from './binaries.ts'
import { type CommandOptions, type CommandResult, run } from './command.ts'
import { folders, paths, readRecord } from './state.ts'
import { silentSteps } from './steps.ts'

/** kubectl of the cluster's own binaries, as its administrator, through the load balancer. */
export async function kubectl(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return run(await kubectlCommand(args), options)
}

export async function kubectlCommand(args: readonly string[]): Promise<string[]> {
  const key = readRecord()?.binaries ?? (await buildBinaries(silentSteps)).key
  return [join(folders.cache, key, 'bin/kubectl'), '--kubeconfig', paths.kubeconfig, ...args]
}

/** What `kubectl get … -o json` lists. */
export async function list<T = KubeObject>(args: readonly string[]): Promise<T[]> {
  const { stdout } = await kubectl(['get', ...args, '-o', 'json', '--request-timeout=5s'])
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

/** Approves what waits of the nodes' own requests for serving certificates, as an operator of this lab does. */
export async function approveServingRequests(): Promise<void> {
  const requests = await list<SigningRequest>(['certificatesigningrequests'])
  const waiting = requests
    .filter(
      ({ spec, status }) =>
        spec.signerName === 'kubernetes.io/kubelet-serving' && status.conditions === undefined,
    )
    .map(({ metadata }) => metadata.name)
  if (waiting.length > 0) await kubectl(['certificate', 'approve', ...waiting])
}
