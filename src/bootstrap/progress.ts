import { commandLine } from '../errors/command-line.ts'
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

type Judged = Omit<BootstrapStep, 'number' | 'id'>

const rbac = 'kcert bootstrap rbac -o yaml | kubectl apply -f -'

/** Judges every step, and says where the node stopped and what to do there. */
export function bootstrapProgress(facts: ProgressFacts): BootstrapProgress {
  const far = furthest(facts)
  const judged = steps.map(({ number, id, sign, judge }): BootstrapStep => {
    const proven = far >= number && sign !== undefined
    const found = proven ? { outcome: 'done' as const, detail: sign(facts) } : judge(facts, far)
    return { number, id, ...found }
  })
  const stop = judged.findIndex(({ outcome }) => outcome === 'stopped')
  const stopNumber = judged[stop]?.number ?? Number.POSITIVE_INFINITY
  const all = judged.map((step): BootstrapStep => {
    if (step.number <= stopNumber) return step
    // Renewals are another matter than the way in: a binding that they lack is said whatever else is wrong.
    if (step.id === 'renewal-approved' && step.outcome === 'stopped') return step
    return { number: step.number, id: step.id, outcome: 'later', detail: step.detail }
  })
  const stopped = all.find(({ outcome }) => outcome === 'stopped')
  return {
    apiVersion: 'kcert/v1',
    kind: 'BootstrapProgress',
    generatedAt: rfc3339(facts.now),
    node: facts.node,
    verdict: stopped === undefined && far >= 13 ? 'arrived' : 'stopped',
    ...(stopped === undefined ? {} : { stoppedAt: stopped.id }),
    steps: all,
  }
}

/** The number of the last step that something proves. */
function furthest(facts: ProgressFacts): number {
  const { nodeObject, lease } = facts
  if (nodeObject !== undefined && nodeObject !== 'absent') return 13
  // A kubelet asks for its Lease before anybody has seen its Node.
  if (lease !== undefined && lease !== 'absent') return 12
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

interface Step {
  readonly number: number
  readonly id: string
  /** How it is known that the step is done, from a sign further on. Absent where a further sign proves nothing. */
  readonly sign?: (facts: ProgressFacts) => string
  readonly judge: (facts: ProgressFacts, far: number) => Judged
}

const onNode = (what: string, next?: string) => (): Judged =>
  notKnown(`${what}: only the node itself shows it`, next)

const lookThere =
  'on the node: systemctl status kubelet; journalctl -u kubelet -n 50; kcert inspect /etc/kubernetes /var/lib/kubelet/pki'

const done = (detail: string): Judged => ({ outcome: 'done', detail })
const stopped = (detail: string, next: string): Judged => ({ outcome: 'stopped', detail, next })
const notKnown = (detail: string, next?: string): Judged => ({
  outcome: 'unknown',
  detail,
  ...(next === undefined ? {} : { next }),
})
const laterThan = (detail: string): Judged => ({ outcome: 'later', detail })

const bySign = (facts: ProgressFacts): string => {
  const request = bootstrapping(facts)
  if (facts.nodeObject !== undefined && facts.nodeObject !== 'absent') return 'its Node is there'
  return request === undefined ? 'it is further on' : `its request ${request.name} is there`
}

const steps: readonly Step[] = [
  { number: 1, id: 'kubelet', sign: bySign, judge: onNode('whether the kubelet runs', lookThere) },
  {
    number: 2,
    id: 'kubeconfig-missing',
    sign: bySign,
    judge: onNode('whether it has no usable kubelet.conf yet'),
  },
  {
    number: 3,
    id: 'bootstrap-kubeconfig',
    sign: bySign,
    judge: onNode('whether bootstrap-kubelet.conf is there'),
  },
  { number: 4, id: 'server-and-token', sign: bySign, judge: onNode('which server and token it names') },
  { number: 5, id: 'token', sign: tokenSign, judge: judgeToken },
  { number: 6, id: 'binding', sign: bySign, judge: judgeBinding },
  { number: 7, id: 'request', sign: requestSign, judge: judgeRequest },
  { number: 8, id: 'approval', sign: () => 'it is approved', judge: judgeApproval },
  { number: 9, id: 'signature', sign: () => 'it is signed', judge: judgeSignature },
  {
    number: 10,
    id: 'certificate',
    sign: () => 'the certificate is on the object, or was',
    judge: () => laterThan('the certificate comes onto the object with the signature'),
  },
  { number: 11, id: 'fetched', sign: () => 'the kubelet has its certificate', judge: judgeFetched },
  {
    number: 12,
    id: 'kubeconfig',
    sign: () => 'the kubelet acts as the node, so its kubelet.conf is written',
    judge: () => laterThan('kubelet.conf is written with the certificate'),
  },
  { number: 13, id: 'node', judge: judgeNode },
  { number: 13, id: 'lease', judge: judgeLease },
  { number: 13, id: 'csinode', judge: judgeCsiNode },
  { number: 14, id: 'renewal', judge: judgeRenewal },
  { number: 15, id: 'renewal-approved', judge: judgeRenewed },
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

function judgeToken({ tokens, tokenId }: ProgressFacts): Judged {
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

function judgeBinding(facts: ProgressFacts): Judged {
  const { createsRequests } = facts.rights
  if (createsRequests === true)
    return done('bearers of the token may create requests (system:node-bootstrapper)')
  if (createsRequests === undefined) return notKnown('whether bearers of a token may create requests', rbac)
  return stopped(
    'bearers of the token may not create requests: the group is bound to no system:node-bootstrapper',
    rbac,
  )
}

function judgeRequest(): Judged {
  return stopped(
    'no request of it has arrived',
    'on the node: journalctl -u kubelet -n 50; ls -l /etc/kubernetes/bootstrap-kubelet.conf',
  )
}

function judgeApproval(facts: ProgressFacts): Judged {
  const request = bootstrapping(facts)
  if (request === undefined) return laterThan('kube-controller-manager, or a person, approves the request')
  const { name, state, message = '' } = request
  if (state === 'denied')
    return stopped(
      `${name} was denied${message === '' ? '' : `: ${message}`}`,
      commandLine`read it, then delete it so that the kubelet requests again: kcert csr describe ${name}; kubectl delete csr ${name}`,
    )
  if (state !== 'pending') return done('it is approved')
  if (facts.rights.isAutoApproved === false)
    return {
      outcome: 'stopped',
      detail: `${name} waits, and nobody approves it by himself: the group is not bound to nodeclient`,
      // Without the right kcert refuses to approve it, too.
      next: [
        rbac,
        commandLine`kube-controller-manager looks again within minutes, or at once: kcert csr approve ${name}`,
      ].join('; '),
    }
  return stopped(`${name} waits for its approval`, commandLine`kcert csr explain ${name}`)
}

function judgeSignature(facts: ProgressFacts): Judged {
  const request = bootstrapping(facts)
  if (request?.state !== 'approved' && request?.state !== 'failed')
    return laterThan('kube-controller-manager signs what is approved')
  const { name, state, message = '' } = request
  if (state === 'failed')
    return stopped(
      `the signer refused ${name}${message === '' ? '' : `: ${message}`}`,
      commandLine`kcert csr explain ${name}`,
    )
  return stopped(`${name} is approved, and not signed`, commandLine`kcert csr explain ${name}`)
}

function judgeFetched(_: ProgressFacts, far: number): Judged {
  if (far < 10) return laterThan('the kubelet fetches the certificate')
  return stopped(
    'the certificate is there, and no sign that the kubelet has fetched it',
    'on the node: journalctl -u kubelet -n 50; ls -l /var/lib/kubelet/pki',
  )
}

function judgeNode({ nodeObject, node }: ProgressFacts): Judged {
  if (nodeObject === undefined) return notKnown('whether there is a Node: it may not be read')
  if (nodeObject === 'absent')
    return stopped('there is no Node of this name', 'on the node: journalctl -u kubelet -n 50')
  const { isReady, message = '' } = nodeObject
  if (isReady === true) return done('the Node is registered and Ready')
  return {
    outcome: 'done',
    detail: `the Node is registered and not Ready${message === '' ? '' : `: ${message}`}`,
    next: commandLine`kubectl describe node ${node}`,
  }
}

function judgeLease({ lease, nodeObject, now }: ProgressFacts): Judged {
  if (lease === undefined) return notKnown('its heartbeat: Leases may not be read')
  if (lease === 'absent') {
    if (nodeObject === 'absent') return laterThan('the heartbeat (Lease in kube-node-lease)')
    // The first attempt comes before the Node is there, and the next one some ten seconds later.
    if (typeof nodeObject === 'object' && nodeObject.isReady === true)
      return laterThan('no Lease yet: its kubelet has reported by the Node itself')
    return stopped(
      'there is no Lease of it in kube-node-lease: its kubelet has never reported',
      'on the node: systemctl status kubelet',
    )
  }
  const seconds = Math.round((now.getTime() - lease.renewedAt.getTime()) / 1000)
  // A clock that is a little behind makes no heartbeat of the future.
  const age = Math.max(0, seconds)
  if (age <= lease.durationSeconds) return done(`the kubelet reported ${age} s ago`)
  return stopped(
    `the kubelet has not reported for ${age} s (since ${rfc3339(lease.renewedAt)})`,
    'on the node: systemctl status kubelet; kcert inspect /var/lib/kubelet/pki',
  )
}

function judgeCsiNode({ csiNode, nodeObject }: ProgressFacts): Judged {
  if (csiNode === 'there') return done('its CSINode is there')
  if (csiNode === undefined) return notKnown('its CSINode may not be read')
  if (nodeObject === 'absent') return laterThan('the CSINode')
  return stopped(
    'there is no CSINode of it: volumes of CSI drivers cannot be mounted there',
    'on the node: journalctl -u kubelet | grep -i csinode',
  )
}

function judgeRenewal(facts: ProgressFacts): Judged {
  const request = renewal(facts)
  if (request !== undefined) return done(`it has asked for a renewal: ${request.name} (${request.state})`)
  if (facts.nodeObject === 'absent') return laterThan('at 70-90 % of its life the certificate is renewed')
  return done('no renewal is asked for now: it comes at 70-90 % of the life')
}

function judgeRenewed(facts: ProgressFacts): Judged {
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
