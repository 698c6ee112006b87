import * as v from 'valibot'
import * as json from '../../x509/json-fields.ts'
import { explanationFields } from '../explain/report.ts'
import { clusterRequestSchema } from '../request-report.ts'

// The JSON contracts of `kcert csr list --pods` and of `kcert csr explain` for a PodCertificateRequest. docs/schemas/ is
// generated from these; the program itself imports only their types.

const { name, uid, creationTimestamp, ageSeconds, conditions, signerName, garbageCollection } =
  clusterRequestSchema.entries

export const podRequestStateSchema = v.picklist(['pending', 'failed', 'denied', 'issued'])

const podRequestSchema = v.object({
  namespace: v.string(),
  name,
  uid,
  creationTimestamp,
  ageSeconds,
  state: podRequestStateSchema,
  conditions,
  signerName,
  podName: v.string(),
  serviceAccountName: v.string(),
  nodeName: json.text('the node whose kubelet created the request'),
  maxExpirationSeconds: v.optional(v.number()),
  notAfter: json.optionalField(json.time, 'of the issued certificate'),
  beginRefreshAt: json.optionalText('when the kubelet starts to request the next certificate'),
  fault: json.optionalText('why the issued certificate cannot be read'),
  garbageCollection,
})

export const podRequestListSchema = v.object({
  ...json.header('PodCertificateRequestList'),
  generatedAt: json.time,
  requests: json.described(
    v.array(podRequestSchema),
    'pending first, then failed, denied, issued; the oldest of each first',
  ),
  summary: json.described(
    v.object({ pending: v.number(), failed: v.number(), denied: v.number(), issued: v.number() }),
    'number of requests by state',
  ),
})

export const podExplanationSchema = v.object({
  ...json.header('PodCertificateRequestExplanation'),
  request: podRequestSchema,
  ...explanationFields,
})

export type PodRequestState = v.InferOutput<typeof podRequestStateSchema>
export type PodRequest = v.InferOutput<typeof podRequestSchema>
export type PodRequestList = v.InferOutput<typeof podRequestListSchema>
export type PodExplanation = v.InferOutput<typeof podExplanationSchema>
