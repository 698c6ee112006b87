import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import type { BootstrapProgress, BootstrapStep } from './progress-report.ts'
import type { TokenFacts } from './token-secret.ts'

// How far a node came on its way into the cluster, as the cluster sees it: the fifteen steps of TLS bootstrap. A later sign proves the
// steps before it, for a kubelet cannot leave one out.

/** A request for the node's client certificate. */
export interface NodeRequest {
  readonly name: string
  readonly username: string
  readonly state: 'pending' | 'approved' | 'denied' | 'failed' | 'issued'
  readonly message?: string
}

export interface ProgressFacts {
  readonly node: string
  /** Undefined where their Secrets may not be read. */
  readonly tokens: readonly TokenFacts[] | undefined
  /** The token that the node was given, where that is known. */
  readonly tokenId: string | undefined
  /** Newest first. */
  readonly requests: readonly NodeRequest[]
  /** What the bearer of the token, or of any valid one, may do; undefined where it may not be asked or there is no token. */
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
const [done, stopped, notKnown, later] = [
  evaluated('done'),
  evaluated('stopped'),
  evaluated('unknown'),
  evaluated('later'),
]

const rbac = 'kcert bootstrap rbac -o yaml | kubectl apply -f -'

/** Judges every step, and says where the node stopped and what to do there. */
export function bootstrapProgress(facts: ProgressFacts): BootstrapProgress {
  const far = furthest(facts)
  const found = steps.map(({ number, id, sign, evaluate }): BootstrapStep => {
    const proven = far >= number && sign !== undefined
    return { number, id, ...(proven ? done(sign(facts)) : evaluate(facts, far)) }
  })
  const stopNumber = found.find(({ outcome }) => outcome === 'stopped')?.number ?? Number.POSITIVE_INFINITY
  const all = found.map((step): BootstrapStep => {
    if (step.number <= stopNumber) return step
    // Renewals are another matter than the way in: a binding that they lack is said whatever else is wrong.
    if (step.id === 'renewal-approved' && step.outcome === 'stopped') return step
    return { number: step.number, id: step.id, ...later(step.detail) }
  })
  const stoppedAt = all.find(({ outcome }) => outcome === 'stopped')?.id
  return {
    apiVersion: 'kcert/v1',
    kind: 'BootstrapProgress',
    generatedAt: rfc3339(facts.now),
    node: facts.node,
    verdict: stoppedAt === undefined && far >= 13 ? 'arrived' : 'stopped',
    ...given({ stoppedAt }),
    steps: all,
  }
}

/** The number of the last step that something proves. */
function furthest(facts: ProgressFacts): number {
  if (typeof facts.nodeObject === 'object') return 13
  // A kubelet asks for its Lease before anybody has seen its Node.
  if (typeof facts.lease === 'object') return 12
  const first = bootstrapping(facts)
  if (first === undefined) return 0
  if (first.state === 'issued') return 10
  return first.state === 'approved' ? 8 : 7
}

/** The request with which the node comes in: by a token, or by whoever is not the node itself yet. */
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
  /** How it is known that the step is done, from a sign further on. Absent where a further sign proves nothing. */
  readonly sign?: Sign
}

function step(number: number, id: string, evaluate: Evaluator, sign?: Sign): Step {
  return { number, id, evaluate, ...(sign && { sign }) }
}

const onNode = (what: string, next?: string) => (): Evaluated =>
  notKnown(`${what}: only the node itself shows it`, next)

const statThere =
  'on the node: systemctl status kubelet; journalctl -u kubelet -n 50; kcert inspect /etc/kubernetes /var/lib/kubelet/pki'

const bySign: Sign = (facts) => {
  const request = bootstrapping(facts)
  if (typeof facts.nodeObject === 'object') return 'its Node is there'
  return request === undefined ? 'it is further on' : `its request ${request.name} is there`
}

const certificateLater = later('the certificate comes onto the object with the signature')
const kubeconfigLater = later('kubelet.conf is written with the certificate')

const steps: readonly Step[] = [
  step(1, 'kubelet', onNode('whether the kubelet runs', statThere), bySign),
  step(2, 'kubeconfig-missing', onNode('whether it has no usable kubelet.conf yet'), bySign),
  step(3, 'bootstrap-kubeconfig', onNode('whether bootstrap-kubelet.conf is there'), bySign),
  step(4, 'server-and-token', onNode('which server and token it names'), bySign),
  step(5, 'token', evaluateToken, tokenSign),
  step(6, 'binding', evaluateBinding, bySign),
  step(7, 'request', evaluateRequest, requestSign),
  step(8, 'approval', evaluateApproval, () => 'it is approved'),
  step(9, 'signature', evaluateSignature, () => 'it is signed'),
  step(
    10,
    'certificate',
    () => certificateLater,
    () => 'the certificate is on the object, or was',
  ),
  step(11, 'fetched', evaluateFetched, () => 'the kubelet has its certificate'),
  step(
    12,
    'kubeconfig',
    () => kubeconfigLater,
    () => 'the kubelet acts as the node, so its kubelet.conf is written',
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
  return id === undefined ? bySign(facts) : `token ${id} was known to the API server`
}

function requestSign(facts: ProgressFacts): string {
  const request = bootstrapping(facts)
  return request === undefined ? bySign(facts) : `${request.name}, by ${request.username}`
}

function evaluateToken({ tokens, tokenId }: ProgressFacts): Evaluated {
  if (tokens === undefined)
    return notKnown(
      'which tokens there are: their Secrets may not be read',
      'ask with a kubeconfig that may list secrets in kube-system',
    )
  const meant = tokenId === undefined ? tokens : tokens.filter(({ id }) => id === tokenId)
  const usable = meant.filter(
    ({ faults, usages }) => faults.length === 0 && usages.includes('authentication'),
  )
  if (usable.length > 0)
    return done(
      tokenId === undefined
        ? `${usable.map(({ id }) => id).join(', ')} would let it in; which one it was given, the node knows`
        : `token ${tokenId} is valid`,
    )
  const [first] = meant
  const detail =
    first === undefined
      ? `the cluster has no ${tokenId === undefined ? 'bootstrap token' : `token ${tokenId}`}: none was made, or it has expired and was cleaned up`
      : `token ${first.id} lets nobody in: ${first.faults.map((fault) => fault.detail).join('; ') || 'it does not authenticate'}`
  return stopped(
    detail,
    'create a token and a kubeconfig for the node: kcert token create && kcert bootstrap kubeconfig --help',
  )
}

function evaluateBinding(facts: ProgressFacts): Evaluated {
  const { createsRequests } = facts.rights
  if (createsRequests === true)
    return done('bearers of the token may create requests (system:node-bootstrapper)')
  if (createsRequests === undefined) return notKnown('whether bearers of a token may create requests', rbac)
  return stopped(
    'bearers of the token may not create requests: the group is bound to no system:node-bootstrapper',
    rbac,
  )
}

function evaluateRequest(): Evaluated {
  return stopped(
    'no request of it has arrived',
    'on the node: journalctl -u kubelet -n 50; ls -l /etc/kubernetes/bootstrap-kubelet.conf',
  )
}

function evaluateApproval(facts: ProgressFacts): Evaluated {
  const request = bootstrapping(facts)
  if (request === undefined) return later('kube-controller-manager, or a person, approves the request')
  const { name, state } = request
  if (state === 'denied')
    return stopped(
      `${name} was denied${messageOf(request)}`,
      commandLine`read it, then delete it so that the kubelet requests again: kcert csr describe ${name}; kubectl delete csr ${name}`,
    )
  if (state !== 'pending') return done('it is approved')
  if (facts.rights.isAutoApproved === false)
    return stopped(
      `${name} waits, and nobody approves it by himself: the group is not bound to nodeclient`,
      // Without the right kcert refuses to approve it, too.
      [
        rbac,
        commandLine`kube-controller-manager looks again within minutes, or at once: kcert csr approve ${name}`,
      ].join('; '),
    )
  return stopped(`${name} waits for its approval`, commandLine`kcert csr explain ${name}`)
}

function evaluateSignature(facts: ProgressFacts): Evaluated {
  const request = bootstrapping(facts)
  if (request?.state !== 'approved' && request?.state !== 'failed')
    return later('kube-controller-manager signs what is approved')
  const { name, state } = request
  const what =
    state === 'failed'
      ? `the signer refused ${name}${messageOf(request)}`
      : `${name} is approved, and not signed`
  return stopped(what, commandLine`kcert csr explain ${name}`)
}

function messageOf({ message = '' }: { readonly message?: string }): string {
  return message === '' ? '' : `: ${message}`
}

function evaluateFetched(_: ProgressFacts, far: number): Evaluated {
  if (far < 10) return later('the kubelet fetches the certificate')
  return stopped(
    'the certificate is there, and no sign that the kubelet has fetched it',
    'on the node: journalctl -u kubelet -n 50; ls -l /var/lib/kubelet/pki',
  )
}

function evaluateNode({ nodeObject, node }: ProgressFacts): Evaluated {
  if (nodeObject === undefined) return notKnown('whether there is a Node: it may not be read')
  if (nodeObject === 'absent')
    return stopped('there is no Node of this name', 'on the node: journalctl -u kubelet -n 50')
  if (nodeObject.isReady === true) return done('the Node is registered and Ready')
  const what = `the Node is registered and not Ready${messageOf(nodeObject)}`
  return done(what, commandLine`kubectl describe node ${node}`)
}

function evaluateLease({ lease, nodeObject, now }: ProgressFacts): Evaluated {
  if (lease === undefined) return notKnown('its heartbeat: Leases may not be read')
  if (lease === 'absent') {
    if (nodeObject === 'absent') return later('the heartbeat (Lease in kube-node-lease)')
    // The first attempt comes before the Node is there, and the next one some ten seconds later.
    if (typeof nodeObject === 'object' && nodeObject.isReady === true)
      return later('no Lease yet: its kubelet has reported by the Node itself')
    return stopped(
      'there is no Lease of it in kube-node-lease: its kubelet has never reported',
      'on the node: systemctl status kubelet',
    )
  }
  // A clock that is a little behind makes no heartbeat of the future.
  const age = Math.max(0, Math.round((now.getTime() - lease.renewedAt.getTime()) / 1000))
  if (age <= lease.durationSeconds) return done(`the kubelet reported ${age} s ago`)
  return stopped(
    `the kubelet has not reported for ${age} s (since ${rfc3339(lease.renewedAt)})`,
    'on the node: systemctl status kubelet; kcert inspect /var/lib/kubelet/pki',
  )
}

function evaluateCsiNode({ csiNode, nodeObject }: ProgressFacts): Evaluated {
  if (csiNode === 'there') return done('its CSINode is there')
  if (csiNode === undefined) return notKnown('its CSINode may not be read')
  if (nodeObject === 'absent') return later('the CSINode')
  return stopped(
    'there is no CSINode of it: volumes of CSI drivers cannot be mounted there',
    'on the node: journalctl -u kubelet | grep -i csinode',
  )
}

function evaluateRenewal(facts: ProgressFacts): Evaluated {
  const request = renewal(facts)
  if (request !== undefined) return done(`it has asked for a renewal: ${request.name} (${request.state})`)
  if (facts.nodeObject === 'absent') return later('at 70-90 % of its life the certificate is renewed')
  return done('no renewal is asked for now: it comes at 70-90 % of the life')
}

function evaluateRenewed(facts: ProgressFacts): Evaluated {
  const request = renewal(facts)
  if (request?.state === 'issued') return done(`${request.name} is issued`)
  if (request !== undefined)
    return stopped(
      `the renewal ${request.name} is ${request.state}`,
      commandLine`kcert csr explain ${request.name}`,
    )
  const { renewsItself } = facts.rights
  if (renewsItself === true) return done('nodes may have renewals approved (selfnodeclient)')
  if (renewsItself === undefined) return notKnown('whether renewals are approved by kube-controller-manager')
  return stopped('nobody approves renewals by himself: system:nodes is not bound to selfnodeclient', rbac)
}
