import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { type FakeApiServer, type FakeOptions, startApiServer } from './api-server.ts'
import { type Json, Refused, type Stored } from './api-server-store.ts'

// A cluster for Jobs on nodes, in the fake API server: the controller of Jobs, kubelets whose container is this machine, the
// deletion of namespaces, and one admission policy. Its contract is in api-server.md, section "Jobs on nodes".

export const pods = (namespace: string) => ({ group: '', version: 'v1', resource: 'pods', namespace })
export const jobs = (namespace: string) => ({ group: 'batch', version: 'v1', resource: 'jobs', namespace })
export const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
export const policies = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  resource: 'validatingadmissionpolicies',
} as const
export const bindings = { ...policies, resource: 'validatingadmissionpolicybindings' } as const
const nodes = { group: '', version: 'v1', resource: 'nodes' } as const
const accounts = { group: '', version: 'v1', resource: 'serviceaccounts' } as const

export interface PodTemplate {
  readonly nodeName: string
  readonly containers: readonly { readonly image: string; readonly command: readonly string[] }[]
}

export interface JobsCluster {
  readonly server: FakeApiServer
  /** Returns the status of a new pod (default one whose container runs). */
  status: (spec: PodTemplate) => Json
  /** False: the admission plugin is disabled. */
  hasPolicies: boolean
  /** Every shell that a kubelet started, the last one last. */
  readonly shells: ChildProcessWithoutNullStreams[]
  /** Ends a pod as an eviction does, with its processes; its Job gets no other one. */
  evict(name: string, namespace: string): void
}

export const runs: Json = { phase: 'Running', containerStatuses: [{ name: 'node', state: { running: {} } }] }

/** Starts the cluster with these nodes. */
export async function startJobsCluster(
  names: readonly string[],
  options: FakeOptions = {},
): Promise<JobsCluster> {
  const server = await startApiServer(options)
  for (const name of names) {
    const status = { conditions: [{ type: 'Ready', status: 'True' }] }
    server.put(nodes, { kind: 'Node', apiVersion: 'v1', metadata: { name }, spec: {}, status })
  }
  const shells: ChildProcessWithoutNullStreams[] = []
  const cluster: JobsCluster = {
    server,
    status: () => runs,
    hasPolicies: true,
    shells,
    evict(name, namespace) {
      const pod = server.peek(pods(namespace), name)
      if (pod === undefined) throw new TypeError(`no pod ${name}`)
      server.put(pods(namespace), { ...pod, status: { phase: 'Failed', reason: 'Evicted' } })
      const job = ownerOf(pod)
      const ended = server.peek(jobs(namespace), job)
      if (ended !== undefined)
        server.put(jobs(namespace), {
          ...ended,
          status: { conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded' }] },
        })
      for (const shell of shells) shell.kill('SIGKILL')
    },
  }
  server.admit = ({ resource, namespace }, object) => {
    if (!cluster.hasPolicies || namespace === undefined || !['pods', 'jobs'].includes(resource)) return
    const policy = server.peek(policies, namespace)
    if (policy === undefined || server.peek(bindings, namespace) === undefined) return
    const spec = templateOf(object)
    const { expression = '', message = '' } =
      validationsOf(policy).find(({ expression: text }) => text.includes('.image == ')) ?? {}
    const image = spec.containers[0]?.image ?? ''
    if (expression.endsWith(`.image == ${JSON.stringify(image)}`)) return
    throw new Refused(422, 'Invalid', `ValidatingAdmissionPolicy '${namespace}' denied request: ${message}`)
  }
  server.onChange(({ type, key, object }) => {
    const { name } = object.metadata
    if (type === 'ADDED' && key.resource === 'jobs') {
      const namespace = key.namespace ?? ''
      const { template } = object.spec as { template: { metadata: Json; spec: PodTemplate } }
      setImmediate(() => {
        if (server.peek(jobs(namespace), name) === undefined) return
        server.put(pods(namespace), {
          kind: 'Pod',
          apiVersion: 'v1',
          metadata: { ...template.metadata, name: `${name}-x`, ownerReferences: [{ kind: 'Job', name }] },
          spec: template.spec,
          status: cluster.status(template.spec),
        })
      })
    }
    if (type === 'DELETED' && key.resource === 'namespaces')
      for (const kind of [jobs(name), pods(name), { ...accounts, namespace: name }])
        for (const one of server.all(kind)) server.remove(kind, one.metadata.name)
  })
  server.exec = ({ command, namespace, pod }) => {
    const { phase } = (server.peek(pods(namespace), pod)?.status ?? {}) as { phase?: string }
    if (phase !== 'Running') throw new Refused(500, 'InternalError', 'container not found ("node")')
    const [chroot, root, ...shell] = command
    if (chroot !== 'chroot' || root !== '/host')
      throw new Refused(400, 'BadRequest', 'the image has only chroot')
    const [program = '', ...args] = shell
    const started = spawn(program, args, { detached: true })
    shells.push(started)
    return started
  }
  return cluster
}

function ownerOf({ metadata }: Stored): string {
  const [owner] = (metadata.ownerReferences ?? []) as { name: string }[]
  return owner?.name ?? ''
}

function templateOf(object: Json): PodTemplate {
  const spec = object.spec as PodTemplate & { template?: { spec: PodTemplate } }
  return spec.template?.spec ?? spec
}

function validationsOf(policy: Stored): readonly { expression: string; message: string }[] {
  return (policy.spec as { validations: { expression: string; message: string }[] }).validations
}
