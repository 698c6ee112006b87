import * as v from 'valibot'
import { nameSchema, timeSchema as time } from '../x509/json-fields.ts'

// The JSON contract of `kcert verify`. docs/schemas/VerificationReport.json is generated from these schemas; the program
// itself only imports their types, so valibot costs nothing at start.

const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]*$/))

const place = {
  source: v.pipe(v.string(), v.description('the file, "-" for standard input, or host:port')),
  entry: v.pipe(
    v.string(),
    v.description(
      'where in the source: "certificate 2", "user admin: client-certificate-data"; empty for all of it',
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
  reason: v.pipe(v.string(), v.description('why its answer is not the one of Go')),
  error: v.optional(v.pipe(v.string(), v.description('what it would say, in words of OpenSSL'))),
})

const warningSchema = v.object({
  ...place,
  code: v.string(),
  message: v.string(),
  next: v.string(),
})

export const verificationReportSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('VerificationReport'),
  generatedAt: time,
  at: v.pipe(time, v.description('the time that was judged at')),
  purpose: v.picklist(['server', 'client', 'any']),
  name: v.optional(
    v.pipe(v.string(), v.description('the host name or IP address that the leaf had to be valid for')),
  ),
  trusted: v.pipe(
    v.boolean(),
    v.description(
      "what Go's crypto/x509 answers, and with it every Kubernetes component (up to 1.37: Go 1.26); of a server and a client also whether TLS uses the key of the leaf, of a client whether an API server takes its user UID",
    ),
  ),
  leaf: certificateSchema,
  chains: v.pipe(
    v.array(v.array(certificateSchema)),
    v.description('every chain that holds, leaf first, root last; empty when there is none'),
  ),
  trustedUntil: v.optional(v.pipe(time, v.description('when the last of these chains ends'))),
  user: v.optional(
    v.pipe(
      v.object({ name: v.string(), groups: v.array(v.string()), uid: v.optional(v.string()) }),
      v.description('whom an API server takes the holder of this client certificate for'),
    ),
  ),
  code: v.optional(v.pipe(v.string(), v.description('why it is refused: docs/refusals.md'))),
  reason: v.optional(v.string()),
  certificate: v.optional(v.pipe(certificateSchema, v.description('the certificate at fault'))),
  issuer: v.optional(
    v.pipe(
      certificateSchema,
      v.description('the certificate that was tried as its issuer, where it is not at fault itself'),
    ),
  ),
  path: v.optional(
    v.pipe(
      v.array(certificateSchema),
      v.description('the chain that was judged, or how far the search came; leaf first'),
    ),
  ),
  next: v.optional(v.string()),
  goError: v.optional(v.pipe(v.string(), v.description('what a component in Go writes into its log'))),
  alsoRefusedBy: v.pipe(v.array(verifierSchema), v.description('other verifiers that refuse it')),
  acceptedBy: v.pipe(v.array(verifierSchema), v.description('other verifiers that accept it')),
  differences: v.pipe(
    v.array(differenceSchema),
    v.description('those of them whose answer is not the one of Go'),
  ),
  warnings: v.array(warningSchema),
})

export type VerificationReport = v.InferOutput<typeof verificationReportSchema>
export type VerifiedCertificate = v.InferOutput<typeof certificateSchema>
export type VerificationWarning = v.InferOutput<typeof warningSchema>
