import * as v from 'valibot'
import { nameSchema, timeSchema as time } from '../x509/json-fields.ts'

// The JSON contract of `kcert csr fetch` and `kcert csr request`. docs/schemas/FetchedCertificate.json is generated from these
// schemas; the program itself imports their types alone. No private key is in it: a key is in its file.

const texts = v.array(v.string())
const path = (meaning: string) => v.optional(v.pipe(v.string(), v.description(meaning)))

export const fetchReportSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('FetchedCertificate'),
  name: v.pipe(v.string(), v.description('of the object')),
  signerName: v.string(),
  subject: nameSchema,
  subjectAltNames: v.object({ dns: texts, ip: texts, email: texts, uri: texts }),
  serialNumber: v.string(),
  notBefore: time,
  notAfter: time,
  extendedKeyUsage: texts,
  fingerprintSha256: v.string(),
  checks: v.array(
    v.object({
      id: v.picklist(['key', 'request-key', 'subject', 'names', 'validity', 'ca']),
      ok: v.boolean(),
      detail: v.string(),
    }),
  ),
  pem: v.pipe(v.string(), v.description('the certificate, and those that its signer sent along')),
  files: v.object({
    certificate: path('the certificate'),
    key: path('the private key; it is in no output'),
    request: path('the request'),
    kubeconfig: path('a kubeconfig for whoever holds the key'),
    manifest: path('a Secret, a ConfigMap, or both'),
  }),
  notices: texts,
})

export type FetchReport = v.InferOutput<typeof fetchReportSchema>
