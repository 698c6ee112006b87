import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'
import { signedCertificateSchema } from './report.ts'

// The JSON contract of `kcert ca sign --csr`. docs/schemas/SignedRequests.json is generated from this; the program itself
// imports only its types.

const { source: _source, entry: _entry, ...certificateEntries } = signedCertificateSchema.entries

const signedRequestSchema = v.object({
  name: v.string(),
  outcome: json.described(
    v.picklist([
      'signed',
      'would-sign',
      'marked-failed',
      'already-signed',
      'skipped',
      'rule-violation',
      'refused',
      'changed',
      'deleted',
      'not-found',
      'failed',
    ]),
    "signed: the certificate was uploaded; marked-failed: the condition Failed was set; already-signed: it already has a certificate; skipped: it is not approved; rule-violation: its signer can never sign it; refused: it is for one of Kubernetes' own signers; changed: another object has its name now; deleted: no longer exists; not-found: no such object; failed: see error",
  ),
  reason: v.string(),
  ...json.adviceEntries,
  uid: v.optional(v.string()),
  signerName: v.optional(v.string()),
  usages: v.optional(json.texts),
  expirationSeconds: json.optionalField(v.number(), 'requested'),
  certificate: v.optional(v.object(certificateEntries)),
  error: v.optional(json.errorSchema),
})

export const signedRequestsSchema = v.object({
  ...json.header('SignedRequests'),
  ca: v.object({ subject: v.string(), notAfter: json.time, fingerprintSha256: v.string() }),
  dryRun: v.boolean(),
  requests: v.array(signedRequestSchema),
  files: v.object({ certificates: v.optional(v.string()), issuanceLog: v.optional(v.string()) }),
  notices: json.texts,
})

export type SignedRequestsReport = v.InferOutput<typeof signedRequestsSchema>
export type SignedRequest = v.InferOutput<typeof signedRequestSchema>
