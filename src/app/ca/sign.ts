import pMap from 'p-map'
import type { CertificateAuthority } from '../../ca/certificate-authority.ts'
import type { SignedRequest, SignedRequestsReport } from '../../ca/cluster-report.ts'
import type { SigningProfile } from '../../ca/profile.ts'
import { type CheckedRequest, type Signed, signAll, signedCertificate } from '../../ca/signing.ts'
import { grantedTtlMs } from '../../ca/validity.ts'
import type { Context } from '../../cli/context.ts'
import { progressOn } from '../../cli/progress.ts'
import {
  markFailed,
  type SignerTerms,
  type SigningCourse,
  signingCourse,
  uploadCertificate,
  type Written,
} from '../../csr/issuing.ts'
import { readRequests } from '../../csr/many-requests.ts'
import type { RequestObject, RequestsApi } from '../../csr/requests-api.ts'
import { type ExitCode, exitCodeOf, exitCodes, worstExit } from '../../errors/codes.ts'
import { given } from '../../errors/given.ts'
import { adviceFields, errorFields } from '../../errors/kcert-error.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'
import { withIssuanceLog } from './ca-files.ts'

// `kcert ca sign --csr`: signs CSRs of a cluster with the local CA. All serial numbers are in the issuance log before the first
// certificate is uploaded. An interrupted run is repeated with new ones.

export interface SigningSettings {
  readonly names: readonly string[]
  readonly signer: string | undefined
  readonly selector: string | undefined
  readonly isForKubernetes: boolean
  /** Set the condition Failed on requests that break a rule. */
  readonly marksFailed: boolean
  readonly dryRun: boolean
  readonly concurrency: number
}

export interface SigningPorts {
  readonly api: RequestsApi
  readonly signingCa: CertificateAuthority
  /** Maximum validity, and URLs. With `boundsUsages`, its usages limit those of the requests. */
  readonly profile: SigningProfile
  readonly boundsUsages: boolean
  readonly issuanceLog: string
  readonly context: Context
}

interface Planned {
  readonly object: RequestObject
  readonly course: SigningCourse
}

interface Absent {
  readonly absent: string
}

/** Signs the selected requests, uploads the certificates, and returns the outcome of each request. */
export async function signRequests(
  settings: SigningSettings,
  ports: SigningPorts,
): Promise<SignedRequestsReport> {
  const { signingCa, issuanceLog } = ports
  const terms: SignerTerms = {
    isForKubernetes: settings.isForKubernetes,
    usages: ports.boundsUsages ? ports.profile.usages : undefined,
    subjectAttributes: ports.profile.subjectAttributes,
  }
  const planned = (await selectRequests(settings, ports.api)).map((one): Planned | Absent =>
    'absent' in one ? one : { object: one, course: signingCourse(one, terms) },
  )
  const certificates = settings.dryRun ? new Map<string, Signed>() : await issueAll(planned, ports)
  const progress = progressOn(ports.context, 'uploaded', certificates.size)
  const requests = await pMap(
    planned,
    async (one) => {
      const result = await settle(one, certificates, settings, ports.api)
      progress.step()
      return result
    },
    { concurrency: settings.concurrency },
  )
  progress.end()
  const { subject, notAfter, fingerprintSha256 } = signingCa.certificate
  return {
    apiVersion: 'kcert/v1',
    kind: 'SignedRequests',
    ca: { subject: subject.text, notAfter: rfc3339(notAfter), fingerprintSha256 },
    dryRun: settings.dryRun,
    requests,
    files: certificates.size === 0 ? {} : { issuanceLog },
    notices: [],
  }
}

async function selectRequests(
  { names, signer, selector, concurrency }: SigningSettings,
  api: RequestsApi,
): Promise<(RequestObject | Absent)[]> {
  const wanted = [...new Set(names)]
  const objects = await readRequests(api, wanted, { concurrency })
  const named = wanted.map((name, index): RequestObject | Absent => objects[index] ?? { absent: name })
  if (signer === undefined && selector === undefined) return named
  const selection = given({ signerName: signer, labelSelector: selector })
  const selected = new Map<string, RequestObject>()
  // A signer ignores requests that are not approved or already issued. They are reported only if they were named.
  for await (const object of api.list(selection)) {
    const { course } = signingCourse(object, {
      isForKubernetes: true,
      usages: undefined,
      subjectAttributes: [],
    })
    const name = object.metadata.name ?? ''
    if ((course === 'sign' || course === 'rule-violation') && !names.includes(name))
      selected.set(name, object)
  }
  return [...named, ...selected.values()]
}

/** Signs all planned requests under one lock of the issuance log, and returns the certificates by name. */
async function issueAll(
  planned: readonly (Planned | Absent)[],
  { signingCa, profile, issuanceLog, context }: SigningPorts,
): Promise<Map<string, Signed>> {
  const byProfile = new Map<string, { profile: SigningProfile; asked: CheckedRequest[] }>()
  for (const one of planned) {
    if ('absent' in one || one.course.course !== 'sign') continue
    const { request, usages, expirationSeconds } = one.course
    const requestedMs = expirationSeconds === undefined ? undefined : expirationSeconds * 1000
    const own = { ...profile, usages, ttlMs: grantedTtlMs(requestedMs, profile.ttlMs) }
    const key = JSON.stringify([usages, own.ttlMs])
    const group = byProfile.get(key) ?? { profile: own, asked: [] }
    group.asked.push({ source: one.object.metadata.name ?? '', entry: '', der: request.der, request })
    byProfile.set(key, group)
  }
  if (byProfile.size === 0) return new Map()
  const signed = await withIssuanceLog(issuanceLog, (opened) =>
    [...byProfile.values()].flatMap((group) =>
      signAll(group.asked, signingCa, group.profile, opened, context.clock(), context.random),
    ),
  )
  return new Map(signed.map((one) => [one.asked.source, one]))
}

async function settle(
  one: Planned | Absent,
  certificates: ReadonlyMap<string, Signed>,
  { dryRun, marksFailed }: SigningSettings,
  api: RequestsApi,
): Promise<SignedRequest> {
  if ('absent' in one) return { name: one.absent, outcome: 'not-found', reason: 'no CSR with this name' }
  const { object, course } = one
  const { uid, name = '' } = object.metadata
  const { signerName, usages, expirationSeconds } = object.spec
  const facts = {
    name,
    ...given({ uid }),
    signerName,
    ...given({ usages: usages && [...usages], expirationSeconds }),
  }
  if (course.course === 'sign') {
    const signed = certificates.get(name)
    // A dry run signs nothing.
    if (signed === undefined)
      return { ...facts, outcome: 'would-sign', reason: 'approved, and breaks no rule of its signer' }
    const { source, entry, ...certificate } = signedCertificate(signed)
    const written = await uploadCertificate(api, object, certificate.pem)
    return {
      ...facts,
      ...outcomeOf(written, 'signed'),
      ...(written.outcome === 'written' ? { certificate } : {}),
    }
  }
  const { reason } = course
  const answer = { ...facts, reason, ...adviceFields(course) }
  if (course.course !== 'rule-violation') return { ...answer, outcome: course.course }
  if (!marksFailed || dryRun) return { ...answer, outcome: 'rule-violation' }
  return { ...answer, ...outcomeOf(await markFailed(api, object, reason), 'marked-failed', reason) }
}

function outcomeOf(
  { outcome, reason, error }: Written,
  done: 'signed' | 'marked-failed',
  otherwise = '',
): Pick<SignedRequest, 'outcome' | 'reason' | 'error'> {
  return {
    outcome: outcome === 'written' ? done : outcome,
    reason: reason === '' ? otherwise : reason,
    ...(error && { error: errorFields(error) }),
  }
}

/** Returns the exit code for the worst of the outcomes. */
export function exitOfSigning({ requests }: SignedRequestsReport): ExitCode {
  const codes = requests.map(({ outcome, error }): ExitCode => {
    if (error !== undefined) return exitCodeOf(error.code)
    if (outcome === 'refused' || outcome === 'changed') return exitCodes.refused
    return outcome === 'signed' || outcome === 'would-sign' || outcome === 'already-signed'
      ? exitCodes.done
      : exitCodes.no
  })
  return worstExit(codes)
}
