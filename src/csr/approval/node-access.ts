import { argumentVector, commandLine } from '../../errors/command-line.ts'
import type { SigningRequest } from '../signing-request.ts'
import type { ApprovalFacts } from './facts.ts'

/** What RBAC says of a requester of a kubelet's client certificate. */
export interface NodeAccess {
  /** What was asked last: where it is not allowed, the right that the requester should have. */
  readonly subresource: 'selfnodeclient' | 'nodeclient'
  /** Undefined when RBAC could not be asked. */
  readonly isAllowed: boolean | undefined
}

/**
 * Returns whether RBAC lets a requester have a kubelet's client certificate, as kube-controller-manager's csrapproving asks: a
 * node for itself first, then whoever may bootstrap; the first yes counts.
 */
export async function nodeAccessOf(
  object: SigningRequest,
  commonName: string | undefined,
  facts: Pick<ApprovalFacts, 'isAllowed'>,
): Promise<NodeAccess> {
  const { username = '', userUid, groups, extra } = object
  const isRenewal = username === commonName
  const subresources = isRenewal ? (['selfnodeclient', 'nodeclient'] as const) : (['nodeclient'] as const)
  for (const subresource of subresources) {
    const isAllowed = await facts.isAllowed({
      user: username,
      ...(userUid === undefined ? {} : { uid: userUid }),
      groups,
      extra,
      resource: {
        group: 'certificates.k8s.io',
        version: '*',
        resource: 'certificatesigningrequests',
        subresource,
        verb: 'create',
      },
    })
    if (isAllowed !== false) return { subresource, isAllowed }
  }
  return { subresource: subresources[0], isAllowed: false }
}

/**
 * Returns the command that asks RBAC the same. kubectl takes what stands behind a slash for the name of an object, so the
 * subresource has a flag of its own.
 */
export function accessCommand(
  { username, groups }: Pick<SigningRequest, 'username' | 'groups'>,
  subresource: NodeAccess['subresource'],
): string {
  const who = [`--as=${username || 'USER'}`, ...groups.map((group) => `--as-group=${group}`)]
  return commandLine`kubectl auth can-i create certificatesigningrequests.certificates.k8s.io --subresource=${subresource} ${argumentVector(who)}`
}
