import { createPublicKey } from 'node:crypto'
import { attempt } from '../../errors/kcert-error.ts'
import { nodeGroup, nodeUserPrefix } from '../../pki/kubelet.ts'
import { type Certificate, readCertificates } from '../../x509/certificate.ts'
import { readPrivateKeyFile } from '../../x509/keys.ts'
import { userUidFault } from '../../x509/name.ts'
import { verifySignature } from '../../x509/signature.ts'

export type Role = 'kubelet-client' | 'kubelet-serving'

export const faultIds = [
  'UNREADABLE',
  'PAIR_MISMATCH',
  'WRONG_CA',
  'WRONG_IDENTITY',
  'WRONG_USAGE',
  'EXPIRED',
  'NOT_YET_VALID',
] as const

/** Why a kubelet cannot use a certificate and its key. */
export interface PairFault {
  readonly id: (typeof faultIds)[number]
  /** Fragments. */
  readonly what: string
  readonly why: string
}

export interface EvaluatedPair {
  readonly leaf?: Certificate
  readonly fault?: PairFault
}

export interface PairContext {
  readonly role: Role
  readonly nowMs: number
  /** Empty where no CA is known: then nothing is said of signatures. */
  readonly cas: readonly Certificate[]
  readonly nodeName?: string
}

/** Returns the first thing for which a kubelet, or whoever talks to it, would refuse these two. */
export function evaluatePair(
  certificates: Uint8Array,
  key: Uint8Array,
  evaluating: PairContext,
): EvaluatedPair {
  const [leaf] = attempt(() => readCertificates(certificates)) ?? []
  if (leaf === undefined)
    return { fault: unreadable('certificate', 'it is cut off, empty, or something else') }
  const fault =
    keyFault(leaf, key) ??
    caFault(leaf, evaluating) ??
    nameFault(leaf, evaluating) ??
    timeFault(leaf, evaluating)
  return { leaf, ...(fault && { fault }) }
}

function unreadable(what: string, why: string): PairFault {
  return { id: 'UNREADABLE', what: `no ${what} can be read`, why }
}

function keyFault(leaf: Certificate, bytes: Uint8Array): PairFault | undefined {
  const key = attempt(() => readPrivateKeyFile(bytes).keyObject)
  if (key === undefined) return unreadable('private key', 'the kubelet wants certificate and key together')
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' })
  if (spki.equals(leaf.publicKey.spki)) return undefined
  return {
    id: 'PAIR_MISMATCH',
    what: 'certificate and key do not belong together',
    why: 'the kubelet refuses the file, and does not start',
  }
}

function caFault(leaf: Certificate, { cas, role }: PairContext): PairFault | undefined {
  if (cas.length === 0 || cas.some((ca) => verifySignature(leaf, ca.publicKey).ok)) return undefined
  return {
    id: 'WRONG_CA',
    what: `no CA that this node knows has signed it (issuer ${leaf.issuer.text})`,
    why:
      role === 'kubelet-client'
        ? 'the API server answers 401 to a client of another CA'
        : 'an API server with --kubelet-certificate-authority refuses it: no logs, no exec',
  }
}

function nameFault(leaf: Certificate, { role, nodeName }: PairContext): PairFault | undefined {
  const values = (type: string): string[] =>
    leaf.subject.rdns.flat().flatMap((one) => (one.type === type ? [one.value] : []))
  const [commonName = ''] = values('CN')
  const identity = (what: string, why: string): PairFault => ({ id: 'WRONG_IDENTITY', what, why })
  if (!commonName.startsWith(nodeUserPrefix) || !values('O').includes(nodeGroup))
    return identity(
      `it is for ${leaf.subject.text}`,
      `a kubelet's is for CN=${nodeUserPrefix}<name>, O=${nodeGroup}`,
    )
  if (nodeName !== undefined && commonName !== nodeUserPrefix + nodeName)
    return identity(
      `it is for ${commonName}, and this node is ${nodeName}`,
      'the node authorizer lets each kubelet touch its own Node alone; files of another machine were copied here',
    )
  const uidFault = role === 'kubelet-client' ? userUidFault(leaf.subject) : undefined
  if (uidFault !== undefined)
    return identity(
      `its subject has ${uidFault} (OID 1.3.6.1.4.1.57683.2)`,
      'API servers since Kubernetes 1.33 answer 401 to it: a user has one UID or none',
    )
  const usage = role === 'kubelet-client' ? 'clientAuth' : 'serverAuth'
  const { extendedKeyUsage } = leaf
  if (extendedKeyUsage === undefined || extendedKeyUsage.length === 0 || extendedKeyUsage.includes(usage))
    return undefined
  return {
    id: 'WRONG_USAGE',
    what: `it may not be used for ${usage}`,
    why: `it is for ${extendedKeyUsage.join(', ')}`,
  }
}

function timeFault(
  { notAfterMs, notAfter, notBeforeMs, notBefore }: Certificate,
  { nowMs }: PairContext,
): PairFault | undefined {
  if (notAfterMs <= nowMs)
    return {
      id: 'EXPIRED',
      what: `it has expired at ${notAfter.toISOString()}`,
      why: 'nobody accepts it any more',
    }
  if (notBeforeMs <= nowMs) return undefined
  return {
    id: 'NOT_YET_VALID',
    what: `it begins at ${notBefore.toISOString()}`,
    why: "the node's clock is behind, or its signer's ahead",
  }
}
