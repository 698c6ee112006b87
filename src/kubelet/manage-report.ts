import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The JSON contract of `kcert kubelet manage`. docs/schemas/ManagedCertificate.json is generated from it.

export const managedCertificateSchema = v.object({
  ...json.header('ManagedCertificate'),
  generatedAt: json.time,
  dryRun: json.described(v.boolean(), 'true with --dry-run: no request was created, and nothing was written'),
  pair: json.text('link to the file with certificate and key'),
  signerName: v.string(),
  usages: json.texts,
  expirationSeconds: v.optional(v.number()),
  template: json.described(
    v.optional(
      v.object({
        commonName: v.string(),
        organization: json.texts,
        organizationalUnit: json.texts,
        dns: json.texts,
        ip: json.texts,
        email: json.texts,
        uri: json.texts,
      }),
    ),
    'requested subject and SANs; absent while the Node has no address',
  ),
  certificate: json.described(
    v.optional(
      v.object({
        path: v.string(),
        subject: json.nameSchema,
        subjectAltNames: json.altNamesSchema,
        serialNumber: v.string(),
        notBefore: json.time,
        notAfter: json.time,
        fingerprintSha256: v.string(),
      }),
    ),
    'current certificate; absent when there is none or it has expired',
  ),
  renewal: v.object({
    due: json.described(
      v.optional(v.string()),
      'why a new certificate is requested at once; absent otherwise',
    ),
    earliest: json.optionalField(json.time, '70 % of the validity'),
    latest: json.optionalField(json.time, '90 % of the validity'),
  }),
  renewals: json.described(v.number(), 'by this process'),
  failures: v.number(),
})

export type ManagedCertificate = v.InferOutput<typeof managedCertificateSchema>
