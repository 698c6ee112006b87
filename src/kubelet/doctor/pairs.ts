import { createPublicKey } from 'node:crypto'
import { orUndefined } from '../../errors/caught.ts'
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
  /** Empty when no CA is known: signatures are then not checked. */
  readonly cas: readonly Certificate[]
  readonly nodeName?: string
}

/** Returns the first reason why the kubelet, its clients or its servers reject the pair. */
export function evaluatePair(
  certificates: Uint8Array,
  key: Uint8Array,
  evaluating: PairContext,
): EvaluatedPair {
  const [leaf] = orUndefined(() => readCertificates(certificates)) ?? []
  if (leaf === undefined)
    return { fault: unreadable('certificate', 'the file is truncated, empty, or has another content') }
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
  const key = orUndefined(() => readPrivateKeyFile(bytes).keyObject)
  if (key === undefined) return unreadable('private key', 'the kubelet needs certificate and key in one file')
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' })
  if (spki.equals(leaf.publicKey.spki)) return undefined
  return {
    id: 'PAIR_MISMATCH',
    what: 'certificate and key do not match',
    why: 'the kubelet rejects the file, and does not start',
  }
}

function caFault(leaf: Certificate, { cas, role }: PairContext): PairFault | undefined {
  if (cas.length === 0 || cas.some((ca) => verifySignature(leaf, ca.publicKey).ok)) return undefined
  return {
    id: 'WRONG_CA',
    what: `signed by a CA that is not on this node (issuer ${leaf.issuer.text})`,
    why:
      role === 'kubelet-client'
        ? 'the API server answers 401 to a client certificate from another CA'
        : 'an API server with --kubelet-certificate-authority rejects it: logs and exec do not work',
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
      `a kubelet needs CN=${nodeUserPrefix}<name>, O=${nodeGroup}`,
    )
  if (nodeName !== undefined && commonName !== nodeUserPrefix + nodeName)
    return identity(
      `it is for ${commonName}, and this node is ${nodeName}`,
      'the node authorizer allows a kubelet its own Node only; the files were probably copied from another machine',
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
    what: `its extended key usage lacks ${usage}`,
    why: `it has ${extendedKeyUsage.join(', ')}`,
  }
}

function timeFault(
  { notAfterMs, notAfter, notBeforeMs, notBefore }: Certificate,
  { nowMs }: PairContext,
): PairFault | undefined {
  if (notAfterMs <= nowMs)
    return {
      id: 'EXPIRED',
      what: `expired at ${notAfter.toISOString()}`,
      why: 'clients and servers reject it',
    }
  if (notBeforeMs <= nowMs) return undefined
  return {
    id: 'NOT_YET_VALID',
    what: `not valid before ${notBefore.toISOString()}`,
    why: "the node's clock is slow, or the signer's is fast",
  }
}
