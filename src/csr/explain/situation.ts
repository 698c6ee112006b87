import { messageOf } from '../../errors/kcert-error.ts'
import { type NodeAccess, nodeAccessOf } from '../approval/node-access.ts'
import type { ControllerEvent } from '../controller-events.ts'
import { issuedCertificate, stateOf } from '../life.ts'
import { isUnmet } from '../rule.ts'
import { isKubernetesDomain } from '../signer-name.ts'
import { findSigner, kubeletClient } from '../signers.ts'
import { signingFindings } from '../signing.ts'
import { readRequestContent, type SigningRequest } from '../signing-request.ts'
import type { ControllerManager, ExplainFacts, Holder } from './facts.ts'
import type { Explanation } from './report.ts'

/** The input of a cause. Undefined facts were unavailable or not needed. */
export interface Situation extends OwnSituation {
  readonly controllerManager: ControllerManager | 'absent' | undefined
  /** Whether RBAC lets csrapproving approve a kubelet client request. */
  readonly nodeAccess: NodeAccess | undefined
  readonly approvers: readonly Holder[] | undefined
  readonly signers: readonly Holder[] | undefined
  readonly leftPending: ControllerEvent | 'none' | undefined
}

/** What the object itself says. */
type OwnSituation = Readonly<ReturnType<typeof ownSituation>>

/** A fact that is unavailable. */
export type UnknownFact = Explanation['unknownFacts'][number]

export interface SituationReading {
  readonly situation: Situation
  readonly open: readonly UnknownFact[]
}

/**
 * Returns the situation of an object. Looks up only facts that matter in its state. Failed lookups are recorded, never thrown.
 */
export async function readSituation(
  object: SigningRequest,
  decidedBy: string | undefined,
  facts: ExplainFacts,
  now: Date,
): Promise<SituationReading> {
  const own = ownSituation(object, decidedBy, now)
  const { state, signedBy, broken } = own
  const open: UnknownFact[] = []
  const ask = asking(open)
  const isPending = state === 'pending'
  const isWaiting = isPending || state === 'approved'
  const isKubelets = object.signerName === kubeletClient && isPending && broken.length === 0
  const needsManager = signedBy === 'kubernetes' && (state === 'approved' || isKubelets)
  const { uid } = object
  const [controllerManager, nodeAccess, approvers, signers, leftPending] = await Promise.all([
    needsManager
      ? ask('whether kube-controller-manager runs', () => facts.readControllerManager())
      : undefined,
    isKubelets && own.request !== undefined
      ? ask('whether RBAC lets the requester have a kubelet certificate', () => knownAccess(own, facts))
      : undefined,
    isPending && signedBy !== 'no-signer' && object.signerName !== kubeletClient
      ? ask('who may approve', () => facts.findHolders('approve', object.signerName))
      : undefined,
    isWaiting && signedBy === 'other-signer'
      ? ask('who may sign', () => facts.findHolders('sign', object.signerName))
      : undefined,
    isPending && broken.length === 0 && uid !== undefined
      ? ask('why the controller leaves it pending', () => facts.readLeftPending(uid))
      : undefined,
  ])
  return { situation: { ...own, controllerManager, nodeAccess, approvers, signers, leftPending }, open }
}

/** Returns a lookup function that records failures in `open` and never throws. */
export function asking(open: UnknownFact[]) {
  return async <Fact>(fact: string, lookup: () => Promise<Fact | undefined>): Promise<Fact | undefined> => {
    try {
      const found = await lookup()
      if (found === undefined)
        open.push({ fact, why: 'your user may not read it, or the cluster does not expose it' })
      return found
    } catch (error) {
      open.push({ fact, why: messageOf(error) })
      return undefined
    }
  }
}

function ownSituation(object: SigningRequest, decidedBy: string | undefined, now: Date) {
  const { request, fault } = readRequestContent(object.request)
  const state = stateOf(object)
  const { signerName } = object
  const approval = object.conditions.find(({ type }) => type === 'Approved')?.lastUpdateTime
  const since = Date.parse((state === 'approved' ? approval : undefined) ?? object.creationTimestamp ?? '')
  const isKnown = findSigner(signerName) !== undefined
  const signedBy: 'kubernetes' | 'no-signer' | 'other-signer' = isKnown
    ? 'kubernetes'
    : isKubernetesDomain(signerName)
      ? 'no-signer'
      : 'other-signer'
  return {
    ...{ object, request, fault, state, now },
    /** Since its creation, or since its approval. */
    waitingSeconds: Number.isNaN(since) ? 0 : Math.max(0, (now.getTime() - since) / 1000),
    signedBy,
    /** Rules of a Kubernetes signer that the request breaks. */
    broken: request === undefined || !isKnown ? [] : signingFindings(object, request).filter(isUnmet),
    certificate: issuedCertificate(object),
    /** The program that approved or denied it, from managedFields: "kubectl", "kube-controller-manager". */
    decidedBy,
  }
}

async function knownAccess(
  { object, request }: OwnSituation,
  facts: ExplainFacts,
): Promise<NodeAccess | undefined> {
  const access = await nodeAccessOf(object, request?.subject.commonName, facts)
  return access.isAllowed === undefined ? undefined : access
}
