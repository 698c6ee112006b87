import * as v from 'valibot'
import {
  altNamesSchema,
  described,
  errorSchema,
  header,
  nameSchema,
  optionalText,
  text,
  texts,
  time,
} from '../x509/json-fields.ts'

// The JSON contract of `kcert csr fetch` and `kcert csr request`. docs/schemas/FetchedCertificate.json and
// FetchedCertificates.json are generated from these schemas; the program itself imports only their types. It contains no private
// key: a key is only in its file.

const certificateEntries = {
  signerName: v.string(),
  subject: nameSchema,
  subjectAltNames: altNamesSchema,
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
}

export const fetchReportSchema = v.object({
  ...header('FetchedCertificate'),
  name: text('of the object'),
  ...certificateEntries,
  pem: text('the certificate, and the certificates that its signer added'),
  files: v.object({
    certificate: optionalText('the certificate'),
    key: optionalText('the private key file; the key itself is in no output'),
    request: optionalText('the request'),
    kubeconfig: optionalText('a kubeconfig with this certificate'),
    manifest: optionalText('a Secret, a ConfigMap, or both'),
  }),
  notices: texts,
})

const fetchedOneSchema = v.object({
  name: text('of the object'),
  outcome: described(
    v.picklist(['fetched', 'present', 'not-issued', 'mismatch', 'not-found', 'refused', 'failed']),
    'fetched: its file was written; present: the file is up to date; not-issued: it is pending, denied or failed; mismatch: it does not match the request; not-found: no such object; refused: another file exists; failed: see error',
  ),
  file: optionalText('where the certificate is'),
  certificate: v.optional(v.object(certificateEntries)),
  error: v.optional(errorSchema),
})

export const fetchedManySchema = v.object({
  ...header('FetchedCertificates'),
  folder: text('where the certificates are'),
  counts: described(v.record(v.string(), v.number()), 'outcome → how many'),
  requests: v.array(fetchedOneSchema),
})

export type FetchReport = v.InferOutput<typeof fetchReportSchema>
export type FetchedOne = v.InferOutput<typeof fetchedOneSchema>
export type FetchedMany = v.InferOutput<typeof fetchedManySchema>
