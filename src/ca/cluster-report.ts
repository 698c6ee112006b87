import * as v from 'valibot'
import { errorSchema } from '../errors/error-schema.ts'
import { described, header, timeSchema as time } from '../x509/json-fields.ts'
import { signedCertificateSchema } from './report.ts'

// The JSON contract of `kcert ca sign --csr`. docs/schemas/SignedRequests.json is generated from this; the program itself
// imports its types alone.

const { source: _source, entry: _entry, ...certificateEntries } = signedCertificateSchema.entries

const signedRequestSchema = v.object({
  name: v.string(),
  outcome: described(
    v.picklist([
      'signed',
      'would-sign',
      'marked-failed',
      'already',
      'left-alone',
      'breaks-rules',
      'refused',
      'changed',
      'gone',
      'not-found',
      'failed',
    ]),
    'signed: the certificate is on the object; marked-failed: the condition Failed is; already: it has one; left-alone: not approved; breaks-rules: it can never be signed; refused: of a signer of Kubernetes; changed: another object took its name; gone: deleted meanwhile; not-found: no such object; failed: see error',
  ),
  reason: v.string(),
  next: v.optional(v.string()),
  uid: v.optional(v.string()),
  signerName: v.optional(v.string()),
  usages: v.optional(v.array(v.string())),
  expirationSeconds: v.optional(described(v.number(), 'asked for')),
  certificate: v.optional(v.object(certificateEntries)),
  error: v.optional(errorSchema),
})

export const signedRequestsSchema = v.object({
  ...header('SignedRequests'),
  ca: v.object({ subject: v.string(), notAfter: time, fingerprintSha256: v.string() }),
  dryRun: v.boolean(),
  requests: v.array(signedRequestSchema),
  files: v.object({ certificates: v.optional(v.string()), ledger: v.optional(v.string()) }),
  notices: v.array(v.string()),
})

export type SignedRequestsReport = v.InferOutput<typeof signedRequestsSchema>
export type SignedRequest = v.InferOutput<typeof signedRequestSchema>
