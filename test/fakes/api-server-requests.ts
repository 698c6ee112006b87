import { randomBytes } from 'node:crypto'
import type { CertificateAuthority } from '../../src/ca/certificate-authority.ts'
import { signRequest } from '../../src/ca/certificate-authority.ts'
import { kubernetesProfile } from '../../src/ca/profile.ts'
import { drawSerialNumber } from '../../src/ca/serial.ts'
import { admissionFindings } from '../../src/csr/admission.ts'
import { signingRequestOfObject } from '../../src/csr/request-object.ts'
import type { ObjectCondition, RequestObject } from '../../src/csr/requests-api.ts'
import { readRequestContent } from '../../src/csr/signing-request.ts'
import type { Usage } from '../../src/pki/usages.ts'
import { Certificate } from '../../src/x509/certificate.ts'
import { readPem, writePem } from '../../src/x509/pem.ts'
import type { FakeUser } from './api-server-access.ts'
import { type Json, Refused, type Stored, seconds } from './api-server-store.ts'
import { grantedSeconds, signerAnswer } from './kubernetes-signer.ts'

// How the API server and kube-controller-manager handle CertificateSigningRequests (k8s.io/kubernetes pkg/registry/certificates,
// pkg/apis/certificates/validation, pkg/controller/certificates/signer), as far as kcert depends on it.

const decisions = ['Approved', 'Denied']
const lasting = ['Approved', 'Denied', 'Failed']

/** Returns a new request as stored. The server sets the requester, and nothing is approved initially. */
export function newRequest(given: Json, user: FakeUser): Json {
  const object = given as unknown as RequestObject
  const spec = {
    ...object.spec,
    username: user.username,
    ...(user.uid !== undefined && { uid: user.uid }),
    groups: [...user.groups],
    ...(user.extra !== undefined && { extra: user.extra }),
  }
  const stored = { ...object, spec, status: {} }
  const fault = admissionFindings(signingRequestOfObject(stored)).find(({ outcome }) => outcome === 'unmet')
  if (fault?.id === 'system-masters' || fault?.id === 'node-restriction') {
    throw new Refused(403, 'Forbidden', `${fault.detail}`)
  }
  if (fault !== undefined) throw invalid(object.metadata?.name ?? '', 'spec', `${fault.id}: ${fault.detail}`)
  return stored as unknown as Json
}

/** Returns the result of a write to the object itself, its approval or its status. */
export function changedRequest(old: Stored, given: Json, subresource: string | undefined, now: Date): Json {
  const before = old as unknown as RequestObject
  const after = given as unknown as RequestObject
  const name = before.metadata.name ?? ''
  if (subresource === undefined) return { ...given, spec: before.spec, status: before.status }
  const conditions = stamped(after.status?.conditions ?? [], before.status?.conditions ?? [], now)
  const kept =
    subresource === 'approval'
      ? conditions
      : conditions.map(
          (condition) =>
            (decisions.includes(condition.type) &&
              before.status?.conditions?.find(({ type }) => type === condition.type)) ||
            condition,
        )
  const status = {
    ...before.status,
    ...(subresource === 'status' && { ...after.status }),
    ...(kept.length > 0 && { conditions: kept }),
  }
  refuseConditions(name, kept, before.status?.conditions ?? [], subresource)
  if (subresource === 'status') refuseCertificate(name, after.status?.certificate, before.status?.certificate)
  return { ...old, status }
}

function stamped(
  conditions: readonly ObjectCondition[],
  before: readonly ObjectCondition[],
  now: Date,
): ObjectCondition[] {
  return conditions.map((condition) => ({
    ...condition,
    lastUpdateTime: condition.lastUpdateTime ?? seconds(now),
    lastTransitionTime:
      condition.lastTransitionTime ??
      before.find(({ type, status }) => type === condition.type && status === condition.status)
        ?.lastTransitionTime ??
      seconds(now),
  }))
}

function refuseConditions(
  name: string,
  conditions: readonly ObjectCondition[],
  before: readonly ObjectCondition[],
  subresource: string,
): void {
  const types = conditions.map(({ type }) => type)
  for (const { type, status } of conditions) {
    const allowed = lasting.includes(type) ? ['True'] : ['True', 'False', 'Unknown']
    if (type === '') throw invalid(name, 'status.conditions[0].type', 'Required value')
    if (!allowed.includes(status))
      throw invalid(name, 'status.conditions[0].status', `Unsupported value: "${status}"`)
    if (types.filter((one) => one === type).length > 1)
      throw invalid(name, 'status.conditions', `Duplicate value: "${type}"`)
  }
  if (decisions.every((type) => types.includes(type)))
    throw invalid(name, 'status.conditions', 'Approved and Denied conditions are mutually exclusive')
  for (const { type } of before) {
    if (lasting.includes(type) && !types.includes(type)) {
      throw invalid(name, 'status.conditions', `updates may not remove a condition of type "${type}"`)
    }
  }
  const added = types.find((type) => !before.some((old) => old.type === type))
  if (subresource === 'status' && added !== undefined && decisions.includes(added))
    throw invalid(name, 'status.conditions', `updates may not add a condition of type "${added}"`)
}

function refuseCertificate(name: string, given: string | undefined, before: string | undefined): void {
  if ((given ?? '') === (before ?? '')) return
  if (before) throw invalid(name, 'status.certificate', 'updates may not modify existing certificate content')
  if (!given) return
  const { blocks } = readPem(Buffer.from(given, 'base64'))
  if (blocks.length === 0)
    throw invalid(name, 'status.certificate', 'must contain at least one CERTIFICATE PEM block')
  for (const { label, der } of blocks) {
    if (label !== 'CERTIFICATE')
      throw invalid(name, 'status.certificate', `only CERTIFICATE PEM blocks are allowed, found "${label}"`)
    try {
      Certificate.parse(der)
    } catch (error) {
      throw invalid(name, 'status.certificate', (error as Error).message)
    }
  }
}

function invalid(name: string, field: string, message: string): Refused {
  return new Refused(
    422,
    'Invalid',
    `CertificateSigningRequest.certificates.k8s.io "${name}" is invalid: ${field}: ${message}`,
    { name, causes: [{ field, message }] },
  )
}

/** The status that a signer adds to an object; undefined for none. */
export type Signer = (
  object: RequestObject,
) => { readonly certificatePem: string } | { readonly failed: string } | undefined

/** Returns a signer with the rules and lifetimes of kube-controller-manager, for its own signers. */
export function controllerSigner(signingCa: CertificateAuthority, now: () => Date): Signer {
  return (object) => {
    const request = signingRequestOfObject(object)
    const content = readRequestContent(request.request).request
    if (content === undefined || request.certificate !== undefined) return undefined
    const has = (type: string): boolean => request.conditions.some((condition) => condition.type === type)
    const answer = signerAnswer(
      request.signerName,
      { request: content, usages: request.usages },
      { approved: has('Approved'), failed: has('Failed') },
    )
    if (answer === 'failed') return { failed: 'the rules of the signer' }
    if (answer !== 'signed') return undefined
    const ttlMs = grantedSeconds(request.expirationSeconds, 365 * 24 * 3600) * 1000
    const serialNumber = drawSerialNumber(randomBytes, () => false)
    const profile = kubernetesProfile(request.usages as readonly Usage[], ttlMs)
    const { certificate } = signRequest(signingCa, content, profile, now(), serialNumber)
    return { certificatePem: writePem('CERTIFICATE', certificate.der) }
  }
}
