import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The JSON contract of `kcert csr fetch` and `kcert csr request`. docs/schemas/FetchedCertificate.json and
// FetchedCertificates.json are generated from these schemas; the program itself imports only their types. It contains no private
// key: a key is only in its file.

const certificateEntries = {
  signerName: v.string(),
  subject: json.nameSchema,
  subjectAltNames: json.altNamesSchema,
  serialNumber: v.string(),
  notBefore: json.time,
  notAfter: json.time,
  extendedKeyUsage: json.texts,
  fingerprintSha256: v.string(),
  checks: json.objects({
    id: v.picklist(['key', 'request-key', 'subject', 'names', 'validity', 'ca']),
    ok: v.boolean(),
    detail: v.string(),
  }),
}

export const fetchReportSchema = v.object({
  ...json.header('FetchedCertificate'),
  name: json.text('of the object'),
  ...certificateEntries,
  pem: json.text('the certificate, and the certificates that its signer added'),
  files: v.object({
    certificate: json.optionalText('the certificate'),
    key: json.optionalText('the private key file; the key itself is in no output'),
    request: json.optionalText('the request'),
    kubeconfig: json.optionalText('a kubeconfig with this certificate'),
    manifest: json.optionalText('a Secret, a ConfigMap, or both'),
  }),
  notices: json.texts,
})

const fetchedOneSchema = v.object({
  name: json.text('of the object'),
  outcome: json.described(
    v.picklist(['fetched', 'present', 'not-issued', 'mismatch', 'not-found', 'refused', 'failed']),
    'fetched: its file was written; present: the file is up to date; not-issued: it is pending, denied or failed; mismatch: it does not match the request; not-found: no such object; refused: another file exists; failed: see error',
  ),
  file: json.optionalText('where the certificate is'),
  certificate: v.optional(v.object(certificateEntries)),
  error: v.optional(json.errorSchema),
})

export const fetchedManySchema = v.object({
  ...json.header('FetchedCertificates'),
  folder: json.text('where the certificates are'),
  counts: json.described(v.record(v.string(), v.number()), 'outcome → how many'),
  requests: v.array(fetchedOneSchema),
})

export type FetchReport = v.InferOutput<typeof fetchReportSchema>
export type FetchedOne = v.InferOutput<typeof fetchedOneSchema>
export type FetchedMany = v.InferOutput<typeof fetchedManySchema>
