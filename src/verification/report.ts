import * as v from 'valibot'
import { certificateFields, described, header, optionalText, text, texts, time } from '../x509/json-fields.ts'

// The JSON contract of `kcert verify`. docs/schemas/VerificationReport.json is generated from these schemas; the program
// itself only imports their types, so valibot costs nothing at start.

const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]*$/))

const place = {
  source: text('file, "-" for standard input, or HOST:PORT'),
  entry: text(
    'part of the source: "certificate 2", "user admin: client-certificate-data"; empty for the whole source',
  ),
}

const certificateSchema = v.object({
  ...place,
  ...certificateFields,
  isCa: v.boolean(),
  fingerprintSha256: hex,
})

const verifierSchema = v.picklist(['openssl', 'node', 'python'])

const differenceSchema = v.object({
  verifier: verifierSchema,
  accepts: v.boolean(),
  reason: text('why its result differs from that of Go'),
  error: optionalText('error message of OpenSSL'),
})

const warningSchema = v.object({
  ...place,
  code: v.string(),
  message: v.string(),
  fix: v.optional(v.string()),
  next: v.string(),
})

export const verificationReportSchema = v.object({
  ...header('VerificationReport'),
  generatedAt: time,
  at: described(time, 'time of the verification'),
  purpose: v.picklist(['server', 'client', 'any']),
  name: optionalText('host name or IP address that the leaf must be valid for'),
  trusted: described(
    v.boolean(),
    "result of Go's crypto/x509, and so of every Kubernetes component (up to 1.37: Go 1.26); for the purposes server and client, false also if TLS in Go does not support the key of the leaf; for client, also if API servers reject its user UID",
  ),
  leaf: certificateSchema,
  chains: described(
    v.array(v.array(certificateSchema)),
    'all valid chains, leaf first, root last; empty if there is none',
  ),
  trustedUntil: v.optional(described(time, 'when the last of these chains expires')),
  user: v.optional(
    described(
      v.object({ name: v.string(), groups: texts, uid: v.optional(v.string()) }),
      'user as which API servers authenticate this client certificate',
    ),
  ),
  code: optionalText('why it is not trusted: docs/refusals.md'),
  reason: v.optional(v.string()),
  advice: optionalText('how to resolve it'),
  certificate: v.optional(described(certificateSchema, 'certificate that is the cause')),
  issuer: v.optional(
    described(certificateSchema, 'certificate that was tried as its issuer, if it is not the cause itself'),
  ),
  path: v.optional(
    described(v.array(certificateSchema), 'chain that was verified, or the longest one found; leaf first'),
  ),
  fix: v.optional(v.string()),
  next: v.optional(v.string()),
  goError: optionalText('error message of components in Go'),
  alsoRefusedBy: described(v.array(verifierSchema), 'other verifiers that reject it'),
  acceptedBy: described(v.array(verifierSchema), 'other verifiers that accept it'),
  differences: described(v.array(differenceSchema), 'other verifiers whose result differs from that of Go'),
  warnings: v.array(warningSchema),
})

export type VerificationReport = v.InferOutput<typeof verificationReportSchema>
export type VerifiedCertificate = v.InferOutput<typeof certificateSchema>
export type VerificationWarning = v.InferOutput<typeof warningSchema>
