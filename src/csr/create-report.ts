import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The JSON contract of `kcert csr create`. docs/schemas/CreatedRequests.json is generated from these schemas; the program itself
// imports only their types. It contains no private key: a key is only in its file.

const manifestSchema = v.object({
  apiVersion: v.literal('certificates.k8s.io/v1'),
  kind: v.literal('CertificateSigningRequest'),
  metadata: v.object({ name: v.string() }),
  spec: v.object({
    request: v.string(),
    signerName: v.string(),
    expirationSeconds: v.exactOptional(v.number()),
    usages: json.texts,
  }),
})

const createdRequestSchema = v.object({
  row: json.optionalText("kubeadm's name of the certificate"),
  subject: json.text('RFC 4514'),
  subjectAltNames: json.altNamesSchema,
  publicKey: json.publicKeyOf(
    v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/), v.description('SHA-256 of the SubjectPublicKeyInfo')),
  ),
  signatureAlgorithm: v.string(),
  pem: json.text('the request'),
  manifest: json.optionalField(manifestSchema, 'the CertificateSigningRequest, if a signer is known'),
  files: v.object({
    request: json.optionalText('absent if it went to standard output'),
    key: json.optionalText('the private key file; the key itself is in no output'),
    kubeconfig: json.optionalText('a kubeconfig with the private key and without its certificate'),
  }),
})

export const createReportSchema = v.object({
  ...json.header('CreatedRequests'),
  requests: v.array(createdRequestSchema),
  notices: json.described(json.texts, 'notes for the user'),
})

/** A CertificateSigningRequest for the API server. */
export type Manifest = v.InferOutput<typeof manifestSchema>
export type CreateReport = v.InferOutput<typeof createReportSchema>
export type CreatedRequest = v.InferOutput<typeof createdRequestSchema>
