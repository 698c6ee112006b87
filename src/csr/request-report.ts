import * as v from 'valibot'
import { described, header, optionalText, text, texts, time } from '../x509/json-fields.ts'
import { requestSchema } from './check-report.ts'
import { requestStates } from './life.ts'

// The fields of one object in the reports on a cluster's requests, and the JSON contract of `kcert csr list`. docs/schemas/ is
// generated from these; the program itself imports only their types.

const conditionSchema = v.object({
  type: v.string(),
  status: v.string(),
  reason: v.optional(v.string()),
  message: v.optional(v.string()),
  lastUpdateTime: v.optional(v.string()),
  lastTransitionTime: optionalText('of PodCertificateRequests'),
})

/** One CertificateSigningRequest of a cluster. */
export const clusterRequestSchema = v.object({
  name: v.string(),
  uid: v.optional(v.string()),
  creationTimestamp: v.optional(v.string()),
  ageSeconds: v.optional(v.number()),
  state: described(v.picklist(requestStates), 'approved: approved and not yet signed'),
  condition: text('as kubectl prints it, such as Approved,Issued'),
  conditions: v.array(conditionSchema),
  signerName: v.string(),
  usages: texts,
  expirationSeconds: v.optional(v.number()),
  username: optionalText('user who created the object'),
  groups: texts,
  labels: v.record(v.string(), v.string()),
  request: v.optional(described(requestSchema, 'absent when the request cannot be read')),
  fault: optionalText('why the request cannot be read'),
  notAfter: v.optional(described(time, 'of the issued certificate')),
  garbageCollection: v.optional(
    described(
      v.object({ after: time, reason: v.string() }),
      'when kube-controller-manager deletes the object; it checks once an hour. Kubernetes 1.34 and older never delete an approved, unsigned object',
    ),
  ),
})

export const requestListSchema = v.object({
  ...header('RequestList'),
  generatedAt: time,
  requests: described(
    v.array(clusterRequestSchema),
    'pending first, then approved, failed, denied, issued; the oldest of each first',
  ),
  summary: described(v.object(v.entriesFromList(requestStates, v.number())), 'number of requests by state'),
})

export type ClusterRequest = v.InferOutput<typeof clusterRequestSchema>
export type RequestList = v.InferOutput<typeof requestListSchema>
