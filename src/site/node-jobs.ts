import type { Pause } from '../cluster/api-client.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { ClientPair } from '../cluster/credentials.ts'
import { credentialRefusals, statusIn } from '../cluster/failures.ts'
import { type ObjectOf, resources } from '../cluster/kinds.ts'
import type { ApiObject } from '../cluster/malformed.ts'
import { metadataOf } from '../cluster/objects.ts'
import { getOne, listAll } from '../cluster/readable.ts'
import type { Resource } from '../cluster/resource.ts'
import { waiting } from '../cluster/resting.ts'
import { missingRights, rightText, rulesOf } from '../cluster/rights.ts'
import { argumentVector, commandLine } from '../errors/command-line.ts'
import { KcertError, wordsOf } from '../errors/kcert-error.ts'
import type { Transport } from '../node/transport.ts'
import type { Generation } from '../rotation/signing.ts'
import { isEndedHere, processIdentity } from '../system/process-identity.ts'
import type { RandomBytes } from '../system/random.ts'
import type { RunningProgram } from '../system/running-program.ts'
import {
  accountObject,
  bindingObject,
  containerName,
  type JobsRun,
  jobName,
  jobObject,
  jobsName,
  jobsRights,
  namespaceObject,
  ofEveryRun,
  onNode,
  ownerIn,
  ownUser,
  podObject,
  podsOf,
  policyObject,
  runName,
} from './node-jobs-objects.ts'
import { RunPods, type SeenPod } from './node-jobs-pods.ts'

// Nodes reached by Kubernetes itself: a Job on each node waits, and a shell on the node is a program in its container, behind the
// API server (docs/decisions/0021-nodes-by-jobs.md).

/** kcert's own client certificates, for the time when API servers no longer accept the user's. */
export interface OwnCredentials {
  /** Reads into memory what they need, while nodes can be reached. Returns false if there is nothing yet. */
  keep(): Promise<boolean>
  client(generation: Generation): Promise<ClientPair>
  /** The CAs of API servers in PEM. */
  trust(): Promise<string>
}

export interface NodeJobsOptions {
  readonly cluster: JobsCluster
  readonly image: string
  readonly random: RandomBytes
  /** Receives a line to show. */
  readonly tell: (note: string) => void
  /** The identity of this process (default `processIdentity`). */
  readonly owner?: string | undefined
  /** Replace waiting in tests. `now` returns milliseconds. */
  readonly pause?: Pause
  readonly now?: () => number
}

type JobsCluster = Pick<Cluster, 'server' | 'connection' | 'objects' | 'podExec' | 'access' | 'as' | 'close'>

const pollMs = 500
// A policy acts within a second. Each API server must have received it.
const policyMs = 15_000
// With the time to pull an image.
const podMs = 120_000
const startRetriesMs = 20_000
// The only API server of a cluster restarts within 51 s.
const connectMs = 180_000
const deletionMs = 60_000
// The controller of Jobs writes at most 20 objects a second by default, and releases each pod before it is deleted.
const deletionMsPerJob = 200
// The controller of Jobs creates about five pods a second, so more Jobs at a time would only wait longer.
const mostStarting = 100
// 5,000 open connections would take the memory of kcert, of API servers and of kubelets.
const idleMs = 10_000
/** A Job whose pod has not appeared is read again after this number of polls. */
const pollsPerJob = 10
// Own client certificates are valid for 30 minutes.
const ownMs = 15 * 60_000
/** A run that is starting has no Job yet. */
const youngMs = 10 * 60_000

/** Why a container cannot start on a node, which waiting does not change. */
const finalFaults = new Set(['ErrImageNeverPull', 'InvalidImageName', 'CreateContainerConfigError'])
/** Those that a later attempt of the kubelet may not have. */
const startFaults = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'ImageInspectError',
  'RegistryUnavailable',
  'CreateContainerError',
  'RunContainerError',
  'CrashLoopBackOff',
])

/** The Jobs of one run of kcert. Others of the same cluster have their own. */
export class NodeJobs {
  readonly #options: NodeJobsOptions
  readonly #run: JobsRun
  readonly #pause: Pause
  readonly #now: () => number
  /** The pods by node, found or awaited. */
  readonly #pods = new Map<string, Promise<string>>()
  readonly #seen: RunPods
  #starting = 0
  readonly #waiting: (() => void)[] = []
  readonly #counts = new Map<string, number>()
  #cluster: JobsCluster
  #own: OwnCredentials | undefined
  #keeping: 'no' | 'trying' | 'done' = 'no'
  /** Set while own credentials are in use. */
  #present: { readonly generation: Generation; readonly untilMs: number } | undefined

  private constructor(options: NodeJobsOptions, run: JobsRun) {
    this.#options = options
    this.#run = run
    this.#seen = new RunPods(run.name)
    this.#cluster = options.cluster
    this.#pause = options.pause ?? waiting
    this.#now = options.now ?? (() => performance.now())
  }

  /**
   * Returns Jobs whose namespace and admission policy exist. The caller closes them. Throws KCERT_API_FORBIDDEN with all missing
   * permissions before anything is created, and KCERT_ROTATION_REFUSED for an API server that is not verified, and if the cluster admits
   * no such pod.
   */
  static async open(options: NodeJobsOptions): Promise<NodeJobs> {
    const { access, objects, server } = options.cluster
    if (options.cluster.connection().skipsTlsVerify || !server.startsWith('https:')) throw unverified(server)
    const user = await access.whoAmI()
    const missing = await missingRights(objects, jobsRights())
    if (missing.length > 0 || user === undefined)
      throw forbidden(user?.username ?? 'USER', missing.map(rightText))
    const { image, owner = processIdentity() } = options
    const name = runName(owner, Buffer.from(options.random(4)))
    const jobs = new NodeJobs(options, { name, image, users: [user.username, ownUser] })
    try {
      await jobs.#prepare()
      return jobs
    } catch (error) {
      await jobs.close()
      throw error
    }
  }

  /** Returns the transport to a node. Its Job is created by the first connection. */
  transport(node: string): Transport {
    const { name } = this.#run
    return {
      title: commandLine`kubectl -n ${name} exec -i ${`job/${jobName(node, 1)}`} -- ${argumentVector(['chroot', '/host', 'sh'])}`,
      idleMs,
      start: (script, signal) => this.#start(node, script, signal),
      explain: () => undefined,
      close: async () => {},
    }
  }

  /** Supplies credentials for the time when API servers no longer accept those of the user. */
  lend(own: OwnCredentials): void {
    this.#own = own
  }

  /** Removes the Jobs, their namespace and the policy, and says so. */
  async close(): Promise<void> {
    this.#seen.close()
    const count = [...this.#counts.values()].reduce((sum, one) => sum + one, 0)
    try {
      await this.#removeAndTell(this.#run.name, count, 'with its Jobs and pods, and its admission policy')
    } finally {
      if (this.#cluster !== this.#options.cluster) this.#cluster.close()
    }
  }

  async #prepare(): Promise<void> {
    const { name } = this.#run
    const created = await this.#create(resources.namespaces, namespaceObject(this.#run))
    await this.#removeLeftovers(created)
    await this.#create({ ...resources.serviceAccounts, namespace: name }, accountObject(this.#run))
    await this.#create(resources.admissionPolicies, policyObject(this.#run))
    await this.#create(resources.admissionPolicyBindings, bindingObject(this.#run))
    await this.#provePolicy()
  }

  /** The policy must refuse another image, and the cluster must admit kcert's own Job and pod. */
  async #provePolicy(): Promise<void> {
    const { name } = this.#run
    const dryRun = (resource: 'jobs' | 'pods', run: JobsRun): Promise<unknown> => {
      const object = resource === 'jobs' ? jobObject(run, name, 0) : podObject(run, name)
      const place = { ...resources[resource], namespace: name }
      return this.#by(({ objects }) => objects.create(place, object, { dryRun: true }))
    }
    const begun = this.#now()
    for (;;) {
      const refusal = await dryRun('jobs', { ...this.#run, image: 'kcert.invalid/other' }).then(
        () => undefined,
        (error: unknown) => error,
      )
      if (isRefusal(refusal)) break
      if (refusal !== undefined) throw refusal
      if (this.#now() - begun > policyMs) {
        throw new KcertError('KCERT_ROTATION_REFUSED', `the admission policy ${name} has no effect`, {
          why: 'the API server created a Job with another image, so every user who may create Jobs there would be root on the nodes; the admission plugin ValidatingAdmissionPolicy may be disabled',
          next: commandLine`kubectl get validatingadmissionpolicies ${name} -o yaml`,
        })
      }
      await this.#pause(pollMs)
    }
    for (const kind of ['jobs', 'pods'] as const) {
      try {
        await dryRun(kind, this.#run)
      } catch (error) {
        if (!isRefusal(error)) throw error
        throw new KcertError(
          'KCERT_ROTATION_REFUSED',
          `the cluster does not admit the ${kind} that reach nodes`,
          {
            why: `${wordsOf(error)}; exempt namespaces with the label app.kubernetes.io/name=${jobsName} from that policy`,
            cause: error,
          },
        )
      }
    }
  }

  /** Starts a shell on a node, as soon as its pod runs and an API server and the kubelet respond. */
  async #start(node: string, script: string, signal: AbortSignal | undefined): Promise<RunningProgram> {
    const deadline = this.#now() + connectMs
    for (;;) {
      signal?.throwIfAborted()
      try {
        const pod = await this.#podOn(node)
        const target = { namespace: this.#run.name, pod, container: containerName, command: onNode(script) }
        const program = await this.#by(({ podExec }) => podExec.start(target))
        this.#keepOwn()
        return program
      } catch (error) {
        this.#pods.delete(node)
        if (!(error instanceof KcertError)) throw error
        if (!isPassing(error) || this.#now() >= deadline) throw unreachable(node, error)
      }
      await this.#pause(pollMs, signal)
    }
  }

  #podOn(node: string): Promise<string> {
    const known = this.#pods.get(node)
    if (known !== undefined) return known
    const asked = this.#inTurn(() => this.#awaitPod(node))
    this.#pods.set(node, asked)
    asked.catch(() => this.#pods.delete(node))
    return asked
  }

  async #inTurn<Result>(act: () => Promise<Result>): Promise<Result> {
    while (this.#starting >= mostStarting) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#starting++
    try {
      return await act()
    } finally {
      this.#starting--
      this.#waiting.shift()?.()
    }
  }

  /** Returns the name of a pod that runs on the node. Creates a Job if no unfinished one exists. */
  async #awaitPod(node: string): Promise<string> {
    const begun = this.#now()
    let faultAt: number | undefined
    for (let polls = 0; ; polls++) {
      const pods = await this.#by(async ({ objects }) => this.#seen.on(node, objects))
      const [pod] = pods.filter(isAlive)
      const { state, lastState } = pod?.status?.containerStatuses?.[0] ?? {}
      const { running, waiting: held } = state ?? {}
      if (pod?.status?.phase === 'Running' && running !== undefined) return pod.metadata.name
      const reason = held?.reason ?? ''
      if (startFaults.has(reason)) faultAt ??= this.#now()
      const isLate = faultAt !== undefined && this.#now() - faultAt > startRetriesMs
      if (finalFaults.has(reason) || (isLate && startFaults.has(reason)))
        throw unfit(node, this.#run.image, reason, [held?.message, lastState?.terminated?.message])
      if (pod === undefined && polls % pollsPerJob === 0) await this.#ensureJob(node, polls === 0)
      if (this.#now() - begun > podMs) throw await this.#late(node, pods)
      await this.#pause(pollMs)
    }
  }

  async #ensureJob(node: string, isFirst: boolean): Promise<void> {
    if (isFirst && (await this.#nodeObject(node)) === undefined) {
      throw new KcertError('KCERT_NODE_UNREACHABLE', `there is no Node object ${JSON.stringify(node)}`, {
        why: 'a Job runs only on a node of the cluster; configure another access for this machine in kcert.yaml',
        next: 'kubectl get nodes',
      })
    }
    const count = this.#counts.get(node) ?? 1
    const place = { ...resources.jobs, namespace: this.#run.name }
    const isKnown = this.#counts.has(node)
    const read = () => this.#by(({ objects }) => getOne(objects, { ...place, name: jobName(node, count) }))
    const job = isKnown ? await read() : undefined
    if (job !== undefined && !isFinished(job)) return
    const next = isKnown ? count + 1 : count
    await this.#create(place, jobObject(this.#run, node, next))
    this.#counts.set(node, next)
  }

  async #late(node: string, pods: readonly SeenPod[]): Promise<KcertError> {
    const object = await this.#nodeObject(node).catch(() => undefined)
    const ready = object?.status?.conditions?.find(({ type }) => type === 'Ready')
    const isReady = ready?.status === 'True'
    const [pod] = pods
    const state = pod?.status?.containerStatuses?.[0]?.state?.waiting
    const seen = [pod?.status?.reason, pod?.status?.message, state?.reason, state?.message].filter(Boolean)
    const what = isReady
      ? `no pod starts on node ${JSON.stringify(node)} within ${podMs / 1000} s`
      : `node ${JSON.stringify(node)} is NotReady: its kubelet starts no pod`
    const why = [...(isReady ? [] : [ready?.message]), ...seen].filter(Boolean).join('; ')
    return new KcertError('KCERT_NODE_UNREACHABLE', what, {
      ...(why !== '' && { why }),
      next: commandLine`kubectl -n ${this.#run.name} describe jobs,pods -l ${podsOf(node).labelSelector}`,
    })
  }

  #nodeObject(name: string): Promise<ObjectOf<'nodes'> | undefined> {
    return this.#by(({ objects }) => getOne(objects, { ...resources.nodes, name }))
  }

  async #create(resource: Resource, object: ApiObject): Promise<ApiObject> {
    try {
      return await this.#by(({ objects }) => objects.create(resource, object))
    } catch (error) {
      // The answer to an earlier attempt was lost. Nobody else knows the name of the run.
      if (statusIn(error) === 409) return object
      throw error
    }
  }

  /** Removes what killed runs left: those of processes that ended on this machine, and old ones without an active Job. */
  async #removeLeftovers(own: ApiObject): Promise<void> {
    const nowMs = createdAtMs(own)
    const { namespaces, admissionPolicies, admissionPolicyBindings } = resources
    const ended = new Set<string>()
    const old = new Set<string>()
    for (const kind of [namespaces, admissionPolicies, admissionPolicyBindings]) {
      for (const object of await this.#by(({ objects }) => listAll(objects, kind, ofEveryRun))) {
        const { name } = object.metadata
        const owner = ownerIn(name)
        // An object that has only the label is not kcert's.
        if (name === this.#run.name || owner === undefined) continue
        if (isEndedHere(owner)) ended.add(name)
        else if (nowMs - createdAtMs(object) > youngMs) old.add(name)
      }
    }
    for (const name of new Set([...ended, ...old])) {
      const jobs = await this.#by(({ objects }) => listAll(objects, { ...resources.jobs, namespace: name }))
      if (!ended.has(name) && jobs.some((job) => !isFinished(job))) continue
      await this.#removeAndTell(name, jobs.length, 'of an interrupted kcert')
    }
  }

  async #removeAndTell(name: string, jobs: number, which: string): Promise<void> {
    try {
      if (await this.#remove(name, jobs)) this.#options.tell(`removed namespace ${name} ${which}`)
    } catch (error) {
      if (!(error instanceof KcertError)) throw error
      this.#options.tell(`could not remove namespace ${name}: ${wordsOf(error)}; remove it: ${removal(name)}`)
    }
  }

  /** Removes a run's namespace, then its policy. Returns false if there was nothing to remove. */
  async #remove(name: string, jobs: number): Promise<boolean> {
    const namespace = { ...resources.namespaces, name }
    const removed = [await this.#by(({ objects }) => objects.delete(namespace))]
    const begun = this.#now()
    const mostMs = deletionMs + jobs * deletionMsPerJob
    while ((await this.#by(({ objects }) => objects.get(namespace))) !== undefined) {
      if (this.#now() - begun > mostMs)
        throw new KcertError('KCERT_UNREACHABLE', `namespace ${name} still exists after ${mostMs / 1000} s`)
      await this.#pause(pollMs)
    }
    for (const kind of [resources.admissionPolicyBindings, resources.admissionPolicies])
      removed.push(await this.#by(({ objects }) => objects.delete({ ...kind, name })))
    return removed.includes(true)
  }

  /** Acts with the user's credentials, or with kcert's own once an API server has refused those. */
  async #by<Result>(act: (cluster: JobsCluster) => Promise<Result>): Promise<Result> {
    const tried = new Set<Generation>()
    for (;;) {
      if (this.#present !== undefined && this.#now() > this.#present.untilMs)
        await this.#useOwn(this.#present.generation)
      const used = this.#cluster
      try {
        return await act(used)
      } catch (error) {
        if (!(error instanceof KcertError) || !credentialRefusals.has(error.code)) throw error
        // Another call has replaced the credentials meanwhile.
        if (this.#cluster !== used) continue
        const generation = (['new', 'old'] as const).find(
          (one) => one !== this.#present?.generation && !tried.has(one),
        )
        if (generation === undefined || this.#keeping !== 'done') throw error
        tried.add(generation)
        await this.#useOwn(generation)
      }
    }
  }

  async #useOwn(generation: Generation): Promise<void> {
    if (this.#own === undefined) return
    const [client, trust] = await Promise.all([this.#own.client(generation), this.#own.trust()])
    if (this.#cluster !== this.#options.cluster) this.#cluster.close()
    this.#cluster = this.#options.cluster.as(client, trust)
    this.#present = { generation, untilMs: this.#now() + ownMs }
  }

  /** Own credentials need the CAs on the nodes, which nobody reaches any more when they are needed. */
  #keepOwn(): void {
    if (this.#own === undefined || this.#keeping !== 'no') return
    this.#keeping = 'trying'
    void this.#own
      .keep()
      .catch(() => false)
      .then((isKept) => {
        this.#keeping = isKept ? 'done' : 'no'
      })
  }
}

function isAlive({ metadata, status }: SeenPod): boolean {
  return (
    metadata.deletionTimestamp === undefined && status?.phase !== 'Failed' && status?.phase !== 'Succeeded'
  )
}

function isFinished({ metadata, status }: ObjectOf<'jobs'>): boolean {
  const isOver = (status?.conditions ?? []).some(
    ({ type, status: holds }) => (type === 'Complete' || type === 'Failed') && holds === 'True',
  )
  return isOver || metadata.deletionTimestamp !== undefined
}

function createdAtMs(object: object): number {
  const { creationTimestamp } = metadataOf(object)
  return typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) : Number.NaN
}

/** Returns true for a refusal by admission. */
function isRefusal(error: unknown): boolean {
  const status = statusIn(error)
  return status === 400 || status === 403 || status === 422
}

/** Returns true for errors of a restarting API server or kubelet, and of a pod that is gone. */
function isPassing(error: KcertError): boolean {
  const status = statusIn(error)
  return error.code === 'KCERT_UNREACHABLE' || status === 404 || status === 400 || status === 409
}

function unreachable(node: string, error: KcertError): KcertError {
  if (error.code.startsWith('KCERT_NODE_')) return error
  return new KcertError(
    'KCERT_NODE_UNREACHABLE',
    `cannot connect to node ${JSON.stringify(node)} through its Job`,
    {
      why: wordsOf(error),
      ...(error.next !== undefined && { next: error.next }),
      cause: error,
    },
  )
}

function unfit(
  node: string,
  image: string,
  reason: string,
  messages: readonly (string | undefined)[],
): KcertError {
  const words = [reason, ...messages.filter(Boolean).map((message) => message?.slice(0, 500))]
  const what = `node ${JSON.stringify(node)} cannot start a container of image ${JSON.stringify(image)}`
  return new KcertError('KCERT_NODE_UNFIT', what, {
    why: `${words.join(': ')}; load the image, which must have sleep and chroot, on the node, or name one that its registry serves`,
    next: '--access jobs:IMAGE',
  })
}

function unverified(server: string): KcertError {
  return new KcertError(
    'KCERT_ROTATION_REFUSED',
    `${server} is not verified, so no node is reached through it`,
    {
      why: 'CA keys would pass through this connection: use a kubeconfig with https and the CA of the cluster',
      next: 'kubectl config view --minify',
    },
  )
}

function forbidden(user: string, missing: readonly string[]): KcertError {
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: jobsName },
    rules: rulesOf(jobsRights()),
  }
  const grant = commandLine`echo ${JSON.stringify(role)} | kubectl apply -f - && kubectl create clusterrolebinding ${jobsName} --clusterrole=${jobsName} --user=${user}`
  return new KcertError('KCERT_API_FORBIDDEN', 'not allowed to reach nodes by Jobs', {
    why:
      missing.length === 0
        ? 'the API server does not report who you are (SelfSubjectReview)'
        : `these permissions are missing: ${missing.join(', ')}. They amount to root on every node`,
    fix: `as an administrator, run: ${grant}`,
  })
}

function removal(name: string): string {
  return commandLine`kubectl delete namespace,validatingadmissionpolicybinding,validatingadmissionpolicy ${name}`
}
