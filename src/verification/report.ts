import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The JSON contract of `kcert verify`. docs/schemas/VerificationReport.json is generated from these schemas; the program
// itself only imports their types, so valibot costs nothing at start.

const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]*$/))

const place = {
  source: json.text('file, "-" for standard input, or HOST:PORT'),
  entry: json.text(
    'part of the source: "certificate 2", "user admin: client-certificate-data"; empty for the whole source',
  ),
}

const certificateSchema = v.object({
  ...place,
  ...json.certificateFields,
  isCa: v.boolean(),
  fingerprintSha256: hex,
})

const verifierSchema = v.picklist(['openssl', 'node', 'python'])

const differenceSchema = v.object({
  verifier: verifierSchema,
  accepts: v.boolean(),
  reason: json.text('why its result differs from that of Go'),
  error: json.optionalText('error message of OpenSSL'),
})

const warningSchema = v.object({
  ...place,
  code: v.string(),
  message: v.string(),
  fix: v.optional(v.string()),
  next: v.string(),
})

export const verificationReportSchema = v.object({
  ...json.header('VerificationReport'),
  generatedAt: json.time,
  at: json.described(json.time, 'time of the verification'),
  purpose: v.picklist(['server', 'client', 'any']),
  name: json.optionalText('host name or IP address that the leaf must be valid for'),
  trusted: json.described(
    v.boolean(),
    "result of Go's crypto/x509, and so of every Kubernetes component (up to 1.37: Go 1.26); for the purposes server and client, false also if TLS in Go does not support the key of the leaf; for client, also if API servers reject its user UID",
  ),
  leaf: certificateSchema,
  chains: json.described(
    v.array(v.array(certificateSchema)),
    'all valid chains, leaf first, root last; empty if there is none',
  ),
  trustedUntil: json.optionalField(json.time, 'when the last of these chains expires'),
  user: json.optionalField(
    v.object({ name: v.string(), groups: json.texts, uid: v.optional(v.string()) }),
    'user as which API servers authenticate this client certificate',
  ),
  code: json.optionalText('why it is not trusted: docs/refusals.md'),
  reason: v.optional(v.string()),
  advice: json.optionalText('how to resolve it'),
  certificate: json.optionalField(certificateSchema, 'certificate that is the cause'),
  issuer: json.optionalField(
    certificateSchema,
    'certificate that was tried as its issuer, if it is not the cause itself',
  ),
  path: json.optionalField(
    v.array(certificateSchema),
    'chain that was verified, or the longest one found; leaf first',
  ),
  ...json.adviceEntries,
  goError: json.optionalText('error message of components in Go'),
  alsoRefusedBy: json.described(v.array(verifierSchema), 'other verifiers that reject it'),
  acceptedBy: json.described(v.array(verifierSchema), 'other verifiers that accept it'),
  differences: json.described(
    v.array(differenceSchema),
    'other verifiers whose result differs from that of Go',
  ),
  warnings: v.array(warningSchema),
})

export type VerificationReport = v.InferOutput<typeof verificationReportSchema>
export type VerifiedCertificate = v.InferOutput<typeof certificateSchema>
export type VerificationWarning = v.InferOutput<typeof warningSchema>
