import type { ClusterRequest } from '../csr/request-report.ts'
import type { CertificateReport, InspectionReport } from '../inspection/report.ts'
import { removalText, toneOf } from './csr-list.ts'
import { type Field, titledFields } from './fields.ts'
import { certificateCard } from './inspection/card.ts'
import { altNameList, keyText } from './names.ts'
import { adviceLines, joinSections } from './sections.ts'
import { printable } from './terminal.ts'
import { secondOf, timeLeft } from './time.ts'
import type { View } from './view.ts'

/** Fields of a request that lists do not show. */
export interface DescribedRequest extends ClusterRequest {
  readonly annotations: Readonly<Record<string, string>>
  readonly decidedBy?: string | undefined
  readonly certificates: readonly CertificateReport[]
  readonly problems: InspectionReport['problems']
}

/** Returns all known fields of the requests, one request after the other. */
export function renderDescriptions(
  requests: readonly DescribedRequest[],
  missing: readonly string[],
  generatedAt: string,
  view: View,
): string {
  const sections = requests.flatMap((request) => [
    requestLines(request, generatedAt, view),
    ...request.certificates.map((one) => certificateCard(one, generatedAt, view)),
    request.problems.flatMap(({ severity, code, message, fix, next }) => [
      `${view.paint.severity[severity](severity)}  ${code}  ${printable(message)}`,
      ...adviceLines({ fix, next: next || undefined }),
    ]),
  ])
  const absent = missing.map((name) => printable(`CertificateSigningRequest ${name} not found`))
  return joinSections([...sections, absent])
}

/** Returns the fields of a request in a cluster. */
export function requestLines(
  request: ClusterRequest & Partial<DescribedRequest>,
  generatedAt: string,
  view: View,
): string[] {
  const {
    name,
    conditions,
    garbageCollection,
    decidedBy,
    username,
    groups,
    expirationSeconds: lifetime,
  } = request
  const asked = request.request
  const fields: Field[] = [
    ['condition', request.condition, view.paint.status[toneOf(request.state)]],
    ...conditions.map((condition): Field => [condition.type.toLowerCase(), conditionWords(condition)]),
    ['decided by', decidedBy && `${decidedBy} (program; the audit log has the user)`],
    ['created', createdText(request)],
    ['requester', username && `${username}${groups.length === 0 ? '' : ` (${groups.join(', ')})`}`],
    ['subject', asked && (asked.subject.text || '(empty)')],
    ['SANs', asked && [...altNameList(asked.subjectAltNames), ...asked.subjectAltNames.other].join(', ')],
    ['key', asked && `${keyText(asked.publicKey)}, sha256:${asked.publicKey.sha256}`],
    ['request', request.fault === undefined ? undefined : `cannot be read: ${request.fault}`],
    ['signer', request.signerName],
    ['usages', request.usages.join(', ')],
    ['lifetime', lifetime === undefined ? undefined : `${lifetime} s requested`],
    ['deleted', garbageCollection && removedText(garbageCollection, generatedAt)],
    ['labels', pairs(request.labels)],
    ['annotations', pairs(request.annotations ?? {})],
    ['uid', request.uid],
  ]
  return titledFields(name, fields, view)
}

export function conditionWords(condition: ClusterRequest['conditions'][number]): string {
  const { status, reason, message, lastTransitionTime, lastUpdateTime = lastTransitionTime } = condition
  const words = [reason, message].filter(Boolean).join(': ')
  const when = lastUpdateTime === undefined ? '' : ` at ${secondOf(lastUpdateTime)}`
  return `${status === 'True' ? '' : `(${status}) `}${words || 'without a reason'}${when}`
}

export function createdText({
  creationTimestamp,
  ageSeconds,
}: Pick<ClusterRequest, 'creationTimestamp' | 'ageSeconds'>): string | undefined {
  if (creationTimestamp === undefined) return undefined
  const age = ageSeconds === undefined ? '' : ` (${timeLeft(Math.max(0, ageSeconds))} ago)`
  return `${secondOf(creationTimestamp)}${age}`
}

export function removedText(
  { after, reason }: NonNullable<ClusterRequest['garbageCollection']>,
  generatedAt: string,
  interval?: string,
): string {
  return `${reason}: ${secondOf(after)} (${removalText(after, Date.parse(generatedAt), interval)})`
}

function pairs(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ')
}
