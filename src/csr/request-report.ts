import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'
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
  lastTransitionTime: json.optionalText('of PodCertificateRequests'),
})

/** One CertificateSigningRequest of a cluster. */
export const clusterRequestSchema = v.object({
  name: v.string(),
  uid: v.optional(v.string()),
  creationTimestamp: v.optional(v.string()),
  ageSeconds: v.optional(v.number()),
  state: json.described(v.picklist(requestStates), 'approved: approved and not yet signed'),
  condition: json.text('as kubectl prints it, such as Approved,Issued'),
  conditions: v.array(conditionSchema),
  signerName: v.string(),
  usages: json.texts,
  expirationSeconds: v.optional(v.number()),
  username: json.optionalText('user who created the object'),
  groups: json.texts,
  labels: v.record(v.string(), v.string()),
  request: json.optionalField(requestSchema, 'absent when the request cannot be read'),
  fault: json.optionalText('why the request cannot be read'),
  notAfter: json.optionalField(json.time, 'of the issued certificate'),
  garbageCollection: json.optionalField(
    v.object({ after: json.time, reason: v.string() }),
    'when kube-controller-manager deletes the object; it checks once an hour. Kubernetes 1.34 and older never delete an approved, unsigned object',
  ),
})

export const requestListSchema = v.object({
  ...json.header('RequestList'),
  generatedAt: json.time,
  requests: json.described(
    v.array(clusterRequestSchema),
    'pending first, then approved, failed, denied, issued; the oldest of each first',
  ),
  summary: json.described(
    v.object(v.entriesFromList(requestStates, v.number())),
    'number of requests by state',
  ),
})

export type ClusterRequest = v.InferOutput<typeof clusterRequestSchema>
export type RequestList = v.InferOutput<typeof requestListSchema>
