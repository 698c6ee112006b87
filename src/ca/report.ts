import * as v from 'valibot'
import { timeSchema as time } from '../x509/json-fields.ts'

// The JSON contracts of `kcert key generate` and `kcert ca`. docs/schemas/ is generated from these; the program itself only
// imports their types.

const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]+$/))
const texts = v.array(v.string())
const path = (meaning: string) => v.pipe(v.string(), v.description(meaning))

const publicKeySchema = v.object({
  algorithm: v.string(),
  bits: v.optional(v.number()),
  curve: v.optional(v.string()),
  sha256: v.pipe(hex, v.description('SHA-256 of the SubjectPublicKeyInfo')),
})

const certificateSchema = v.object({
  subject: v.pipe(v.string(), v.description('RFC 4514')),
  issuer: v.string(),
  serialNumber: v.pipe(hex, v.description('hexadecimal')),
  notBefore: time,
  notAfter: time,
  isCa: v.boolean(),
  pathLength: v.optional(v.number()),
  publicKey: publicKeySchema,
  signatureAlgorithm: v.string(),
  subjectAltNames: v.object({ dns: texts, ip: texts, email: texts, uri: texts }),
  keyUsage: texts,
  extendedKeyUsage: texts,
  fingerprintSha256: hex,
})

const noticesSchema = v.pipe(texts, v.description('what whoever asked for this should know'))

const header = <Kind extends string>(kind: Kind) => ({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal(kind),
})

export const keyReportSchema = v.object({
  ...header('GeneratedKey'),
  file: path('where the private key is; it is in no output'),
  keyType: v.pipe(v.string(), v.description('RSA-2048, ECDSA-P256, Ed25519, …')),
  format: v.picklist(['pkcs8', 'sec1', 'pkcs1']),
  encrypted: v.boolean(),
  publicKey: publicKeySchema,
  notices: noticesSchema,
})

export const authorityReportSchema = v.object({
  ...header('CertificateAuthority'),
  action: v.picklist(['created', 'renewed']),
  certificate: certificateSchema,
  caPin: v.pipe(v.string(), v.description('kubeadm --discovery-token-ca-cert-hash')),
  pem: v.pipe(v.string(), v.description('the certificate')),
  files: v.object({
    certificate: v.optional(path('absent when it went to standard output')),
    key: v.optional(path('absent when it went to standard output')),
    ledger: v.optional(path('where the serial number was written down')),
    backup: v.optional(path('the certificate that was there before')),
  }),
  notices: noticesSchema,
})

export const signedCertificateSchema = v.object({
  source: v.pipe(v.string(), v.description('the file of the request, "-" for standard input')),
  entry: v.pipe(v.string(), v.description('which request of the file; empty when it has one')),
  ...certificateSchema.entries,
  pem: v.string(),
  droppedExtensions: v.pipe(texts, v.description('requested, and not in the certificate')),
  droppedAttributes: v.pipe(texts, v.description('of the requested subject, and not in the certificate')),
  notices: noticesSchema,
})

export const signingReportSchema = v.object({
  ...header('SignedCertificates'),
  ca: v.object({ subject: v.string(), notAfter: time, fingerprintSha256: hex }),
  usages: texts,
  lifetimeSeconds: v.pipe(v.number(), v.description('granted, before the end of the CA cuts it')),
  certificates: v.array(signedCertificateSchema),
  files: v.object({ certificates: v.optional(v.string()), ledger: v.string() }),
  notices: noticesSchema,
})

const bundleMemberSchema = v.object({
  place: v.string(),
  subject: v.string(),
  notBefore: time,
  notAfter: time,
  isCa: v.boolean(),
  fingerprintSha256: hex,
})

export const bundleReportSchema = v.object({
  ...header('CaBundle'),
  members: v.array(bundleMemberSchema),
  leftOut: v.array(v.object({ ...bundleMemberSchema.entries, reason: v.picklist(['duplicate', 'expired']) })),
  file: v.optional(v.string()),
  pem: v.string(),
  notices: noticesSchema,
})

export type KeyReport = v.InferOutput<typeof keyReportSchema>
export type AuthorityReport = v.InferOutput<typeof authorityReportSchema>
export type SignedCertificate = v.InferOutput<typeof signedCertificateSchema>
export type SigningReport = v.InferOutput<typeof signingReportSchema>
export type BundleReport = v.InferOutput<typeof bundleReportSchema>
export type CertificateFacts = v.InferOutput<typeof certificateSchema>
export type PublicKeyFacts = v.InferOutput<typeof publicKeySchema>
export type BundleMemberFacts = v.InferOutput<typeof bundleMemberSchema>
