import { argumentVector, commandLine } from '../../errors/command-line.ts'
import type { SigningRequest } from '../signing-request.ts'
import type { ApprovalFacts } from './facts.ts'

/** The result of the RBAC lookup for a requester of a kubelet client certificate. */
export interface NodeAccess {
  /** The last subresource that was looked up: where it is not allowed, the permission that the requester lacks. */
  readonly subresource: 'selfnodeclient' | 'nodeclient'
  /** Undefined when the RBAC lookup was unavailable. */
  readonly isAllowed: boolean | undefined
}

/**
 * Returns whether RBAC lets a requester have a kubelet client certificate, as kube-controller-manager's csrapproving checks it:
 * selfnodeclient first for a node itself, then nodeclient for a bootstrapping client. The first one that is allowed counts.
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
 * Returns the equivalent kubectl command. kubectl takes the part after a slash for the name of an object, so the subresource
 * needs a separate flag.
 */
export function accessCommand(
  { username, groups }: Pick<SigningRequest, 'username' | 'groups'>,
  subresource: NodeAccess['subresource'],
): string {
  const who = [`--as=${username || 'USER'}`, ...groups.map((group) => `--as-group=${group}`)]
  return commandLine`kubectl auth can-i create certificatesigningrequests.certificates.k8s.io --subresource=${subresource} ${argumentVector(who)}`
}
