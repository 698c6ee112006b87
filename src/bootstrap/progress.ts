import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import type { BootstrapProgress, BootstrapStep } from './progress-report.ts'
import type { TokenFacts } from './token-secret.ts'

// How far a node got in TLS bootstrap, in fifteen steps, as visible in the cluster. A kubelet cannot skip a step, so evidence of a
// later step proves the earlier ones.

/** A request for the node's client certificate. */
export interface NodeRequest {
  readonly name: string
  readonly username: string
  readonly state: 'pending' | 'approved' | 'denied' | 'failed' | 'issued'
  readonly message?: string
}

export interface ProgressFacts {
  readonly node: string
  /** Undefined without permission to read their Secrets. */
  readonly tokens: readonly TokenFacts[] | undefined
  /** The token of the node, if known. */
  readonly tokenId: string | undefined
  /** Newest first. */
  readonly requests: readonly NodeRequest[]
  /** Rights of the user of the token, or of any valid token; undefined without permission to check, or without a token. */
  readonly rights: {
    readonly createsRequests: boolean | undefined
    readonly isAutoApproved: boolean | undefined
    readonly renewsItself: boolean | undefined
  }
  readonly nodeObject:
    | { readonly isReady: boolean | undefined; readonly message?: string }
    | 'absent'
    | undefined
  readonly lease: { readonly renewedAt: Date; readonly durationSeconds: number } | 'absent' | undefined
  readonly csiNode: 'there' | 'absent' | undefined
  readonly now: Date
}

type Evaluated = Omit<BootstrapStep, 'number' | 'id'>

const evaluated =
  (outcome: Evaluated['outcome']) =>
  (detail: string, next?: string): Evaluated =>
    given({ outcome, detail, next })
const done = evaluated('done')
const stopped = evaluated('stopped')
const notKnown = evaluated('unknown')
const later = evaluated('waiting')

const rbac = 'kcert bootstrap rbac -o yaml | kubectl apply -f -'
const kubeletLog = 'journalctl -u kubelet -n 50'

/** Evaluates every step. The first one that is not complete is where the node stopped. */
export function bootstrapProgress(facts: ProgressFacts): BootstrapProgress {
  const far = furthest(facts)
  const found = steps.map(({ number, id, sign, evaluate }): BootstrapStep => {
    const proven = far >= number && sign !== undefined
    return { number, id, ...(proven ? done(sign(facts)) : evaluate(facts, far)) }
  })
  const stopNumber = found.find(({ outcome }) => outcome === 'stopped')?.number ?? Number.POSITIVE_INFINITY
  const all = found.map((step): BootstrapStep => {
    const { number, id, outcome, detail } = step
    // Renewals do not depend on the earlier steps: a missing binding is reported in any case.
    const stands = number <= stopNumber || (id === 'renewal-approved' && outcome === 'stopped')
    return stands ? step : { number, id, ...later(detail) }
  })
  const stoppedAt = all.find(({ outcome }) => outcome === 'stopped')?.id
  return {
    apiVersion: 'kcert/v1',
    kind: 'BootstrapProgress',
    generatedAt: rfc3339(facts.now),
    node: facts.node,
    verdict: stoppedAt === undefined && far >= 13 ? 'joined' : 'stopped',
    ...given({
      ready: typeof facts.nodeObject === 'object' ? facts.nodeObject.isReady : undefined,
      stoppedAt,
    }),
    steps: all,
  }
}

/** Number of the last step for which there is evidence. */
function furthest(facts: ProgressFacts): number {
  if (typeof facts.nodeObject === 'object') return 13
  // A kubelet creates its Lease before its Node is visible.
  if (typeof facts.lease === 'object') return 12
  const first = bootstrapping(facts)
  if (first === undefined) return 0
  if (first.state === 'issued') return 10
  return first.state === 'approved' ? 8 : 7
}

/** The request for the first certificate: created with a token, or by another user that is not the node itself. */
function bootstrapping({ requests, node }: ProgressFacts): NodeRequest | undefined {
  return requests.find(({ username }) => username !== `system:node:${node}`)
}

function renewal({ requests, node }: ProgressFacts): NodeRequest | undefined {
  return requests.find(({ username }) => username === `system:node:${node}`)
}

type Evaluator = (facts: ProgressFacts, far: number) => Evaluated
type Sign = (facts: ProgressFacts) => string

interface Step {
  readonly number: number
  readonly id: string
  readonly evaluate: Evaluator
  /** The evidence from a later step that this one is complete; absent when there is none. */
  readonly sign?: Sign
}

function step(number: number, id: string, evaluate: Evaluator, sign?: Sign): Step {
  return { number, id, evaluate, ...(sign && { sign }) }
}

const onNode = (what: string, next?: string) => (): Evaluated =>
  notKnown(`${what}: visible only on the node`, next)

const bySign: Sign = (facts) => {
  const request = bootstrapping(facts)
  if (typeof facts.nodeObject === 'object') return 'the Node exists'
  return request === undefined ? 'a later step is complete' : `request ${request.name} exists`
}

const noRequest = stopped(
  'the node has created no request; its kubelet logs why, so run this on the node',
  kubeletLog,
)
const certificateLater = later('the signer puts the certificate into the status of the request')
const kubeconfigLater = later('the kubelet writes kubelet.conf when it has the certificate')

const steps: readonly Step[] = [
  step(1, 'kubelet', onNode('whether the kubelet runs', kubeletLog), bySign),
  step(2, 'kubeconfig-missing', onNode('whether it has no usable kubelet.conf'), bySign),
  step(3, 'bootstrap-kubeconfig', onNode('whether bootstrap-kubelet.conf exists'), bySign),
  step(4, 'server-and-token', onNode('the server and token in bootstrap-kubelet.conf'), bySign),
  step(5, 'token', evaluateToken, tokenSign),
  step(6, 'binding', evaluateBinding, bySign),
  step(7, 'request', () => noRequest, requestSign),
  step(8, 'approval', evaluateApproval, () => 'it is approved'),
  step(9, 'signature', evaluateSignature, () => 'it is signed'),
  step(
    10,
    'certificate',
    () => certificateLater,
    () => 'the certificate is or was in the status of the request',
  ),
  step(11, 'fetched', evaluateFetched, () => 'the kubelet has its certificate'),
  step(
    12,
    'kubeconfig',
    () => kubeconfigLater,
    () => 'the kubelet authenticates as the node, so it has kubelet.conf',
  ),
  step(13, 'node', evaluateNode),
  step(13, 'lease', evaluateLease),
  step(13, 'csinode', evaluateCsiNode),
  step(14, 'renewal', evaluateRenewal),
  step(15, 'renewal-approved', evaluateRenewed),
]

function tokenSign(facts: ProgressFacts): string {
  const { username = '' } = bootstrapping(facts) ?? {}
  const [, id] = /^system:bootstrap:(.+)$/.exec(username) ?? []
  return id === undefined ? bySign(facts) : `the API server authenticated token ${id}`
}

function requestSign(facts: ProgressFacts): string {
  const request = bootstrapping(facts)
  return request === undefined ? bySign(facts) : `${request.name}, by ${request.username}`
}

function evaluateToken({ tokens, tokenId }: ProgressFacts): Evaluated {
  if (tokens === undefined)
    return notKnown(
      'which tokens exist: you may not list secrets in kube-system',
      'kubectl auth can-i list secrets -n kube-system',
    )
  const meant = tokenId === undefined ? tokens : tokens.filter(({ id }) => id === tokenId)
  const usable = meant.filter(
    ({ faults, usages }) => faults.length === 0 && usages.includes('authentication'),
  )
  if (usable.length > 0 && tokenId !== undefined) return done(`token ${tokenId} is valid`)
  if (usable.length > 0) {
    const ids = usable.map(({ id }) => id).join(', ')
    return done(`valid tokens: ${ids}; only the node shows which one it has`)
  }
  const [first] = meant
  const detail =
    first === undefined
      ? `the cluster has no ${tokenId === undefined ? 'bootstrap token' : `token ${tokenId}`}: it was never created, or it expired and was deleted`
      : `token ${first.id} cannot be used: ${first.faults.map((fault) => fault.detail).join('; ') || 'it does not authenticate'}`
  return stopped(
    `${detail}; create a token, then the kubeconfig of the node with kcert bootstrap kubeconfig`,
    'kcert token create',
  )
}

function evaluateBinding(facts: ProgressFacts): Evaluated {
  const { createsRequests } = facts.rights
  if (createsRequests === true)
    return done('users of the token may create requests (system:node-bootstrapper)')
  if (createsRequests === undefined) return notKnown('whether users of a token may create requests', rbac)
  return stopped(
    'users of the token may not create requests: their group is not bound to system:node-bootstrapper',
    rbac,
  )
}

function evaluateApproval(facts: ProgressFacts): Evaluated {
  const request = bootstrapping(facts)
  if (request === undefined) return later('kube-controller-manager or an administrator approves the request')
  const { name, state } = request
  if (state === 'denied')
    return stopped(
      `${name} was denied${messageOf(request)}; once it is deleted, the kubelet creates another`,
      commandLine`kubectl delete csr ${name}`,
    )
  if (state !== 'pending') return done('it is approved')
  if (facts.rights.isAutoApproved === false)
    return stopped(
      `${name} is pending and not approved automatically: the group is not bound to nodeclient`,
      // Without this binding, kcert csr approve refuses the request too. With it, kube-controller-manager approves it within minutes.
      rbac,
    )
  return stopped(`${name} is pending`, commandLine`kcert csr explain ${name}`)
}

function evaluateSignature(facts: ProgressFacts): Evaluated {
  const request = bootstrapping(facts)
  if (request?.state !== 'approved' && request?.state !== 'failed')
    return later('kube-controller-manager signs approved requests')
  const { name, state } = request
  const what =
    state === 'failed'
      ? `the signer rejected ${name}${messageOf(request)}`
      : `${name} is approved but not signed`
  return stopped(what, commandLine`kcert csr explain ${name}`)
}

function messageOf({ message = '' }: { readonly message?: string }): string {
  return message === '' ? '' : `: ${message}`
}

function evaluateFetched(_: ProgressFacts, far: number): Evaluated {
  if (far < 10) return later('the kubelet fetches the certificate')
  return stopped(
    'the certificate is issued, but there is no evidence that the kubelet fetched it; run this on the node',
    kubeletLog,
  )
}

function evaluateNode({ nodeObject, node }: ProgressFacts): Evaluated {
  if (nodeObject === undefined) return notKnown('whether the Node exists: you may not read it')
  if (nodeObject === 'absent') return stopped('there is no Node with this name', kubeletLog)
  if (nodeObject.isReady === true) return done('the Node is registered and Ready')
  const what = `the Node is registered but not Ready${messageOf(nodeObject)}`
  return done(what, commandLine`kubectl describe node ${node}`)
}

function evaluateLease({ lease, nodeObject, now }: ProgressFacts): Evaluated {
  if (lease === undefined) return notKnown('the heartbeat: you may not read Leases')
  if (lease === 'absent') {
    if (nodeObject === 'absent') return later('the heartbeat (Lease in kube-node-lease)')
    // The kubelet first tries before the Node exists, and again about ten seconds later.
    if (typeof nodeObject === 'object' && nodeObject.isReady === true)
      return later('no Lease yet: the kubelet has reported in the status of the Node')
    return stopped(
      'there is no Lease in kube-node-lease: the kubelet has never reported; run this on the node',
      'systemctl status kubelet',
    )
  }
  // This machine's clock may be a little behind: a heartbeat is never in the future.
  const age = Math.max(0, Math.round((now.getTime() - lease.renewedAt.getTime()) / 1000))
  if (age <= lease.durationSeconds) return done(`the kubelet reported ${age} s ago`)
  return stopped(
    `the kubelet has not reported for ${age} s (since ${rfc3339(lease.renewedAt)}); run this on the node`,
    'systemctl status kubelet',
  )
}

function evaluateCsiNode({ csiNode, nodeObject }: ProgressFacts): Evaluated {
  if (csiNode === 'there') return done('the CSINode exists')
  if (csiNode === undefined) return notKnown('the CSINode: you may not read it')
  if (nodeObject === 'absent') return later('the CSINode')
  return stopped(
    'there is no CSINode: the node cannot mount volumes of CSI drivers; run this on the node',
    'journalctl -u kubelet | grep -i csinode',
  )
}

function evaluateRenewal(facts: ProgressFacts): Evaluated {
  const request = renewal(facts)
  if (request !== undefined) return done(`renewal requested: ${request.name} (${request.state})`)
  if (facts.nodeObject === 'absent') return later('the kubelet requests a renewal at 70-90 % of the validity')
  return done('no renewal requested yet: the kubelet does so at 70-90 % of the validity')
}

function evaluateRenewed(facts: ProgressFacts): Evaluated {
  const request = renewal(facts)
  if (request?.state === 'issued') return done(`${request.name} is issued`)
  if (request !== undefined) {
    const { name, state } = request
    return stopped(`the renewal ${name} is ${state}`, commandLine`kcert csr explain ${name}`)
  }
  const { renewsItself } = facts.rights
  if (renewsItself === true) return done('renewals of nodes are approved automatically (selfnodeclient)')
  if (renewsItself === undefined) return notKnown('whether kube-controller-manager approves renewals')
  return stopped('renewals are not approved automatically: system:nodes is not bound to selfnodeclient', rbac)
}
