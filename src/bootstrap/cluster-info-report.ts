import * as v from 'valibot'
import { given } from '../errors/given.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import type { Certificate } from '../x509/certificate.ts'
import * as json from '../x509/json-fields.ts'
import { checkLineSchema } from './check-line.ts'
import type { ClusterInfo } from './cluster-info.ts'
import { pinOf } from './pin.ts'

// The JSON contract of `kcert cluster-info`.

const time = v.pipe(v.string(), v.isoTimestamp())

const caSchema = v.object({
  subject: json.text('RFC 4514'),
  notBefore: time,
  notAfter: time,
  pin: v.pipe(
    v.string(),
    v.regex(/^sha256:[0-9a-f]{64}$/),
    v.description('public key pin, for kubeadm join --discovery-token-ca-cert-hash'),
  ),
  fingerprintSha256: json.hex,
  isCa: v.boolean(),
})

const signatureSchema = v.object({
  tokenId: v.string(),
  state: json.described(
    v.picklist(['valid', 'stale', 'missing', 'orphaned', 'unknown']),
    'stale: it does not match the current text and token; missing: there is no signature with this signing token; orphaned: no valid signing token has this ID; unknown: no permission to read the Secrets of the tokens',
  ),
})

export const clusterInfoSchema = v.object({
  ...json.header('ClusterInfo'),
  resourceVersion: v.string(),
  server: v.optional(v.string()),
  cas: v.array(caSchema),
  signatures: v.array(signatureSchema),
  faults: json.objects({ id: v.string(), detail: v.string(), next: v.string() }),
})

export const clusterInfoVerificationSchema = v.object({
  ...json.header('ClusterInfoVerification'),
  server: v.optional(v.string()),
  verdict: json.described(
    v.picklist(['ok', 'failed', 'unknown']),
    'failed: a check failed, so a joining node may fail or trust the wrong cluster; unknown: not everything could be checked',
  ),
  checks: v.array(checkLineSchema),
})

export const clusterInfoUpdateSchema = v.object({
  ...json.header('ClusterInfoUpdate'),
  outcome: v.picklist(['updated', 'unchanged', 'would-update', 'declined']),
  server: v.optional(v.string()),
  before: v.array(caSchema),
  after: v.array(caSchema),
  signatures: json.described(v.array(signatureSchema), 'state after the command'),
  diff: json.described(json.texts, 'of data.kubeconfig, long values shortened and credentials hidden'),
  backup: json.optionalText('file with the old object'),
  notices: json.texts,
})

export const caPinsSchema = v.object({
  ...json.header('CaPins'),
  source: json.text('"kube-public/cluster-info", or the files'),
  cas: v.array(caSchema),
})

export type CaFacts = v.InferOutput<typeof caSchema>
export type SignatureFacts = v.InferOutput<typeof signatureSchema>
export type ClusterInfoReport = v.InferOutput<typeof clusterInfoSchema>
export type ClusterInfoVerification = v.InferOutput<typeof clusterInfoVerificationSchema>
export type ClusterInfoUpdate = v.InferOutput<typeof clusterInfoUpdateSchema>
export type CaPins = v.InferOutput<typeof caPinsSchema>

/** Returns the report fields of a CA. */
export function caFacts(certificate: Certificate): CaFacts {
  const { subject, notBefore, notAfter, fingerprintSha256, isCa } = certificate
  return {
    subject: subject.text,
    notBefore: rfc3339(notBefore),
    notAfter: rfc3339(notAfter),
    pin: pinOf(certificate),
    fingerprintSha256,
    isCa,
  }
}

/** Returns the content of kube-public/cluster-info for a report. */
export function clusterInfoReport(
  info: ClusterInfo,
  resourceVersion: string,
  signatures: readonly SignatureFacts[],
): ClusterInfoReport {
  return {
    apiVersion: 'kcert/v1',
    kind: 'ClusterInfo',
    resourceVersion,
    ...given({ server: info.server }),
    cas: info.cas.map(caFacts),
    signatures: [...signatures],
    faults: info.faults.map(({ id, detail, next }) => ({ id, detail, next })),
  }
}
