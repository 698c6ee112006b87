import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The JSON contracts of `kcert key generate` and `kcert ca`. docs/schemas/ is generated from these; the program itself only
// imports their types.

const publicKeySchema = json.publicKeyOf(json.described(json.hex, 'SHA-256 of the SubjectPublicKeyInfo'))

const certificateSchema = v.object({
  subject: json.text('RFC 4514'),
  issuer: v.string(),
  serialNumber: json.described(json.hex, 'hexadecimal'),
  notBefore: json.time,
  notAfter: json.time,
  isCa: v.boolean(),
  pathLength: v.optional(v.number()),
  publicKey: publicKeySchema,
  signatureAlgorithm: v.string(),
  subjectAltNames: json.altNamesSchema,
  keyUsage: json.texts,
  extendedKeyUsage: json.texts,
  fingerprintSha256: json.hex,
})

const noticesSchema = json.described(json.texts, 'notices for the user')

export const keyReportSchema = v.object({
  ...json.header('GeneratedKey'),
  file: json.text('file of the private key, which is never printed'),
  keyType: json.text('RSA-2048, ECDSA-P256, Ed25519, …'),
  format: v.picklist(['pkcs8', 'sec1', 'pkcs1']),
  encrypted: v.boolean(),
  publicKey: publicKeySchema,
  notices: noticesSchema,
})

export const caReportSchema = v.object({
  ...json.header('CertificateAuthority'),
  action: v.picklist(['created', 'renewed']),
  certificate: certificateSchema,
  caPin: json.text('discovery token CA cert hash (kubeadm join --discovery-token-ca-cert-hash)'),
  pem: json.text('the certificate'),
  files: v.object({
    certificate: json.optionalText('absent if printed to standard output'),
    key: json.optionalText('absent if printed to standard output'),
    issuanceLog: json.optionalText('issuance log with the serial number'),
    backup: json.optionalText('backup of the previous certificate'),
  }),
  notices: noticesSchema,
})

export const signedCertificateSchema = v.object({
  source: json.text('file of the request; "-" for standard input'),
  entry: json.text('which request of the file; empty if it has only one'),
  ...certificateSchema.entries,
  pem: v.string(),
  droppedExtensions: json.described(json.texts, 'requested extensions that are not in the certificate'),
  droppedAttributes: json.described(
    json.texts,
    'attributes of the requested subject that are not in the certificate',
  ),
  notices: noticesSchema,
})

export const signingReportSchema = v.object({
  ...json.header('SignedCertificates'),
  ca: v.object({ subject: v.string(), notAfter: json.time, fingerprintSha256: json.hex }),
  usages: json.texts,
  lifetimeSeconds: json.described(
    v.number(),
    'granted validity, before it is capped at the expiry of the CA',
  ),
  certificates: v.array(signedCertificateSchema),
  files: v.object({ certificates: v.optional(v.string()), issuanceLog: v.string() }),
  notices: noticesSchema,
})

const bundleMemberSchema = v.object({
  location: v.string(),
  subject: v.string(),
  notBefore: json.time,
  notAfter: json.time,
  isCa: v.boolean(),
  fingerprintSha256: json.hex,
})

export const bundleReportSchema = v.object({
  ...json.header('CaBundle'),
  members: v.array(bundleMemberSchema),
  skipped: json.objects({ ...bundleMemberSchema.entries, reason: v.picklist(['duplicate', 'expired']) }),
  file: v.optional(v.string()),
  pem: v.string(),
  notices: noticesSchema,
})

export type KeyReport = v.InferOutput<typeof keyReportSchema>
export type CaReport = v.InferOutput<typeof caReportSchema>
export type SignedCertificate = v.InferOutput<typeof signedCertificateSchema>
export type SigningReport = v.InferOutput<typeof signingReportSchema>
export type BundleReport = v.InferOutput<typeof bundleReportSchema>
export type CertificateFacts = v.InferOutput<typeof certificateSchema>
export type PublicKeyFacts = v.InferOutput<typeof publicKeySchema>
export type BundleMemberFacts = v.InferOutput<typeof bundleMemberSchema>
