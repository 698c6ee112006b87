import * as v from 'valibot'
import { nameSchema, timeSchema as time } from '../x509/json-fields.ts'

// The JSON contract of `kcert verify`. docs/schemas/VerificationReport.json is generated from these schemas; the program
// itself only imports their types, so valibot costs nothing at start.

const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]*$/))

const place = {
  source: v.pipe(v.string(), v.description('file, "-" for standard input, or HOST:PORT')),
  entry: v.pipe(
    v.string(),
    v.description(
      'part of the source: "certificate 2", "user admin: client-certificate-data"; empty for the whole source',
    ),
  ),
}

const certificateSchema = v.object({
  ...place,
  subject: nameSchema,
  issuer: nameSchema,
  serialNumber: v.pipe(v.string(), v.regex(/^-?[0-9a-f]+$/), v.description('hexadecimal')),
  notBefore: time,
  notAfter: time,
  isCa: v.boolean(),
  fingerprintSha256: hex,
})

const verifierSchema = v.picklist(['openssl', 'node', 'python'])

const differenceSchema = v.object({
  verifier: verifierSchema,
  accepts: v.boolean(),
  reason: v.pipe(v.string(), v.description('why its result differs from that of Go')),
  error: v.optional(v.pipe(v.string(), v.description('error message of OpenSSL'))),
})

const warningSchema = v.object({
  ...place,
  code: v.string(),
  message: v.string(),
  fix: v.optional(v.string()),
  next: v.string(),
})

export const verificationReportSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('VerificationReport'),
  generatedAt: time,
  at: v.pipe(time, v.description('time of the verification')),
  purpose: v.picklist(['server', 'client', 'any']),
  name: v.optional(
    v.pipe(v.string(), v.description('host name or IP address that the leaf must be valid for')),
  ),
  trusted: v.pipe(
    v.boolean(),
    v.description(
      "result of Go's crypto/x509, and so of every Kubernetes component (up to 1.37: Go 1.26); for the purposes server and client, false also if TLS in Go does not support the key of the leaf; for client, also if API servers reject its user UID",
    ),
  ),
  leaf: certificateSchema,
  chains: v.pipe(
    v.array(v.array(certificateSchema)),
    v.description('all valid chains, leaf first, root last; empty if there is none'),
  ),
  trustedUntil: v.optional(v.pipe(time, v.description('when the last of these chains expires'))),
  user: v.optional(
    v.pipe(
      v.object({ name: v.string(), groups: v.array(v.string()), uid: v.optional(v.string()) }),
      v.description('user as which API servers authenticate this client certificate'),
    ),
  ),
  code: v.optional(v.pipe(v.string(), v.description('why it is not trusted: docs/refusals.md'))),
  reason: v.optional(v.string()),
  advice: v.optional(v.pipe(v.string(), v.description('how to resolve it'))),
  certificate: v.optional(v.pipe(certificateSchema, v.description('certificate that is the cause'))),
  issuer: v.optional(
    v.pipe(
      certificateSchema,
      v.description('certificate that was tried as its issuer, if it is not the cause itself'),
    ),
  ),
  path: v.optional(
    v.pipe(
      v.array(certificateSchema),
      v.description('chain that was verified, or the longest one found; leaf first'),
    ),
  ),
  fix: v.optional(v.string()),
  next: v.optional(v.string()),
  goError: v.optional(v.pipe(v.string(), v.description('error message of components in Go'))),
  alsoRefusedBy: v.pipe(v.array(verifierSchema), v.description('other verifiers that reject it')),
  acceptedBy: v.pipe(v.array(verifierSchema), v.description('other verifiers that accept it')),
  differences: v.pipe(
    v.array(differenceSchema),
    v.description('other verifiers whose result differs from that of Go'),
  ),
  warnings: v.array(warningSchema),
})

export type VerificationReport = v.InferOutput<typeof verificationReportSchema>
export type VerifiedCertificate = v.InferOutput<typeof certificateSchema>
export type VerificationWarning = v.InferOutput<typeof warningSchema>
