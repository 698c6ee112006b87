import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { type AdviceOrCommand, adviceFields, KcertError } from '../errors/kcert-error.ts'
import { isUsage, type Usage } from '../pki/usages.ts'
import { allowAttributes, copiedBesides } from '../x509/go-name.ts'
import type { CertificateRequest } from '../x509/request.ts'
import { differenceOf, mayPass, withCondition } from './approval/acting.ts'
import { listed } from './quoting.ts'
import { signingRequestOfObject } from './request-object.ts'
import type { RequestObject, RequestsApi } from './requests-api.ts'
import { isUnmet } from './rule.ts'
import { isKubernetesDomain } from './signer-name.ts'
import { signingFindings } from './signing.ts'
import { hasCondition, readRequestContent, type SigningRequest } from './signing-request.ts'

// The signer of a cluster: which objects it may sign, and how it writes the certificate or the failure to the object.

/** What the signer does with an object in its current state. */
export type SigningCourse =
  | {
      readonly course: 'sign'
      readonly request: CertificateRequest
      readonly usages: readonly Usage[]
      readonly expirationSeconds: number | undefined
    }
  | {
      /**
       * already-signed: it has a certificate. skipped: it is not approved. refused: for another signer. rule-violation: never signed.
       */
      readonly course: 'already-signed' | 'skipped' | 'refused' | 'rule-violation'
      readonly reason: string
      readonly fix?: string
      readonly next?: string
    }

export interface SignerTerms {
  /** Sign in place of kube-controller-manager. */
  readonly isForKubernetes: boolean
  /** The maximum usages; undefined: all usages of Kubernetes. */
  readonly usages: readonly Usage[] | undefined
  /** Subject attributes that are signed in addition to CN and O. */
  readonly subjectAttributes: readonly string[]
}

/** Returns what the signer does: it signs objects that are approved, not failed and not issued, for exactly spec.usages. */
export function signingCourse(object: RequestObject, terms: SignerTerms): SigningCourse {
  const asked = signingRequestOfObject(object)
  const settled = settledCourse(asked)
  if (settled !== undefined) return settled
  const { signerName, usages, expirationSeconds } = asked
  if (isKubernetesDomain(signerName) && !terms.isForKubernetes) {
    const fix = 'let kube-controller-manager sign it, or add --kubernetes-signers to sign in its place'
    return { course: 'refused', reason: `${signerName} is a built-in signer of Kubernetes`, fix }
  }
  const { request, fault } = readRequestContent(asked.request)
  if (request === undefined) return broken(fault.detail, fault)
  const verdict = request.verifySignature()
  if (!verdict.ok)
    return broken(`the signature of the request is invalid: ${verdict.reason}`, {
      fix: 'create a new request',
    })
  const content = contentFault(request, terms)
  if (content !== undefined) return content
  const rule = isKubernetesDomain(signerName) ? signingFindings(asked, request).find(isUnmet) : undefined
  if (rule !== undefined) return broken(rule.detail, rule)
  return (
    usageFault(usages, terms) ?? {
      course: 'sign',
      request,
      usages: usages.filter(isUsage),
      expirationSeconds,
    }
  )
}

function settledCourse(asked: SigningRequest): SigningCourse | undefined {
  const leftAlone = (reason: string, next?: string): SigningCourse => ({
    ...{ course: 'skipped', reason },
    ...given({ next }),
  })
  if (asked.certificate !== undefined) return { course: 'already-signed', reason: 'already issued' }
  if (asked.deletionTimestamp !== undefined) return leftAlone('the object is being deleted')
  if (hasCondition(asked, 'Denied')) return leftAlone('it is denied')
  if (hasCondition(asked, 'Failed')) return leftAlone('it failed: the requester must submit a new request')
  if (hasCondition(asked, 'Approved')) return undefined
  return leftAlone('it is not approved', asked.name && commandLine`kcert csr approve ${asked.name}`)
}

// kcert does not sign what none of its policies approves, even if another approver approved it.
function contentFault(
  { subject, unreadAttributes }: CertificateRequest,
  { subjectAttributes }: SignerTerms,
): SigningCourse | undefined {
  if (unreadAttributes.length > 0)
    return broken(`the request has ${listed(unreadAttributes)}, which Kubernetes does not read`, {
      fix: 'create a new request',
    })
  const more = copiedBesides(subject, subjectAttributes)
  if (more.length === 0) return undefined
  return broken(`the profile does not allow ${listed(more)} in the subject`, { fix: allowAttributes(more) })
}

function usageFault(asked: readonly string[], { usages }: SignerTerms): SigningCourse | undefined {
  if (asked.length === 0)
    return broken('spec.usages is empty', {
      fix: 'submit it with usages (kcert csr submit --usage "server auth")',
    })
  const unknown = asked.filter((usage) => !isUsage(usage))
  if (unknown.length > 0)
    return broken(`Kubernetes has no usage ${listed(unknown)}`, { fix: 'spell them as Kubernetes does' })
  const beyond = usages === undefined ? [] : asked.filter((usage) => !usages.some((one) => one === usage))
  if (usages === undefined || beyond.length === 0) return undefined
  const fix = `request at most ${listed(usages)}, or sign with another profile`
  return broken(`the profile does not allow ${listed(beyond)}`, { fix })
}

function broken(reason: string, advice: AdviceOrCommand): SigningCourse {
  return { course: 'rule-violation', reason, ...adviceFields(advice) }
}

/** The result of a write to the status of an object. */
export interface Written {
  readonly outcome: 'written' | 'already-signed' | 'skipped' | 'changed' | 'deleted' | 'failed'
  readonly reason: string
  readonly error?: KcertError
}

/** Writes a certificate to the object that was signed, despite concurrent changes; never to another object. */
export function uploadCertificate(api: RequestsApi, object: RequestObject, pem: string): Promise<Written> {
  const certificate = Buffer.from(pem).toString('base64')
  return writeStatus(api, object, {
    change: (now) => ({ ...now, status: { ...now.status, certificate } }),
    settled(now) {
      const course = settledCourse(signingRequestOfObject(now))
      if (course === undefined || course.course === 'sign') return undefined
      const isOurs = now.status?.certificate === certificate
      if (course.course === 'already-signed')
        return isOurs
          ? { outcome: 'written', reason: seenLater }
          : { outcome: 'already-signed', reason: 'another certificate is already issued' }
      return { outcome: 'skipped', reason: course.reason }
    },
  })
}

/**
 * Writes the condition Failed to an object that breaks a rule of its signer, so that the requester sees it and creates another
 * one.
 */
export function markFailed(api: RequestsApi, object: RequestObject, message: string): Promise<Written> {
  const condition = { type: 'Failed', status: 'True', reason: 'SignerValidationFailure', message }
  return writeStatus(api, object, {
    change: (now) => withCondition(now, condition),
    settled(now) {
      const failed = now.status?.conditions?.find(({ type }) => type === 'Failed')
      if (failed !== undefined)
        return {
          outcome: 'written',
          reason: failed.message === message ? seenLater : 'another writer set the condition Failed first',
        }
      return now.status?.certificate ? { outcome: 'already-signed', reason: 'already issued' } : undefined
    },
  })
}

const seenLater = 'the answer was lost, and a second read shows that the write succeeded'
const mostAttempts = 6

interface StatusWrite {
  readonly change: (now: RequestObject) => RequestObject
  /** Returns the result when nothing is left to write. */
  readonly settled: (now: RequestObject) => Written | undefined
}

async function writeStatus(
  api: RequestsApi,
  signed: RequestObject,
  { change, settled }: StatusWrite,
): Promise<Written> {
  let now = signed
  let failure: KcertError | undefined
  try {
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      try {
        await api.replaceStatus(change(now))
        return { outcome: 'written', reason: '' }
      } catch (error) {
        if (!mayPass(error)) throw error
        failure = error
      }
      const object = await api.get(signed.metadata.name ?? '')
      if (object === undefined) return { outcome: 'deleted', reason: 'deleted in the meantime' }
      const swap = differenceOf(signed, object)
      if (swap !== undefined) return { outcome: 'changed', reason: swap }
      const end = settled(object)
      if (end !== undefined) return end
      // The write did not happen, and the adapter has used up its retries.
      if (failure.code === 'KCERT_UNREACHABLE') throw failure
      now = object
    }
    throw failure
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    return { outcome: 'failed', reason: error.message, error }
  }
}
