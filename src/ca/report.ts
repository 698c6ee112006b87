import * as v from 'valibot'
import {
  altNamesSchema,
  described,
  header,
  hex,
  optionalText,
  text,
  texts,
  time,
} from '../x509/json-fields.ts'

// The JSON contracts of `kcert key generate` and `kcert ca`. docs/schemas/ is generated from these; the program itself only
// imports their types.

const publicKeySchema = v.object({
  algorithm: v.string(),
  bits: v.optional(v.number()),
  curve: v.optional(v.string()),
  sha256: described(hex, 'SHA-256 of the SubjectPublicKeyInfo'),
})

const certificateSchema = v.object({
  subject: text('RFC 4514'),
  issuer: v.string(),
  serialNumber: described(hex, 'hexadecimal'),
  notBefore: time,
  notAfter: time,
  isCa: v.boolean(),
  pathLength: v.optional(v.number()),
  publicKey: publicKeySchema,
  signatureAlgorithm: v.string(),
  subjectAltNames: altNamesSchema,
  keyUsage: texts,
  extendedKeyUsage: texts,
  fingerprintSha256: hex,
})

const noticesSchema = described(texts, 'notices for the user')

export const keyReportSchema = v.object({
  ...header('GeneratedKey'),
  file: text('file of the private key, which is never printed'),
  keyType: text('RSA-2048, ECDSA-P256, Ed25519, …'),
  format: v.picklist(['pkcs8', 'sec1', 'pkcs1']),
  encrypted: v.boolean(),
  publicKey: publicKeySchema,
  notices: noticesSchema,
})

export const caReportSchema = v.object({
  ...header('CertificateAuthority'),
  action: v.picklist(['created', 'renewed']),
  certificate: certificateSchema,
  caPin: text('discovery token CA cert hash (kubeadm join --discovery-token-ca-cert-hash)'),
  pem: text('the certificate'),
  files: v.object({
    certificate: optionalText('absent if printed to standard output'),
    key: optionalText('absent if printed to standard output'),
    issuanceLog: optionalText('issuance log with the serial number'),
    backup: optionalText('backup of the previous certificate'),
  }),
  notices: noticesSchema,
})

export const signedCertificateSchema = v.object({
  source: text('file of the request; "-" for standard input'),
  entry: text('which request of the file; empty if it has only one'),
  ...certificateSchema.entries,
  pem: v.string(),
  droppedExtensions: described(texts, 'requested extensions that are not in the certificate'),
  droppedAttributes: described(texts, 'attributes of the requested subject that are not in the certificate'),
  notices: noticesSchema,
})

export const signingReportSchema = v.object({
  ...header('SignedCertificates'),
  ca: v.object({ subject: v.string(), notAfter: time, fingerprintSha256: hex }),
  usages: texts,
  lifetimeSeconds: described(v.number(), 'granted validity, before it is capped at the expiry of the CA'),
  certificates: v.array(signedCertificateSchema),
  files: v.object({ certificates: v.optional(v.string()), issuanceLog: v.string() }),
  notices: noticesSchema,
})

const bundleMemberSchema = v.object({
  location: v.string(),
  subject: v.string(),
  notBefore: time,
  notAfter: time,
  isCa: v.boolean(),
  fingerprintSha256: hex,
})

export const bundleReportSchema = v.object({
  ...header('CaBundle'),
  members: v.array(bundleMemberSchema),
  skipped: v.array(v.object({ ...bundleMemberSchema.entries, reason: v.picklist(['duplicate', 'expired']) })),
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
