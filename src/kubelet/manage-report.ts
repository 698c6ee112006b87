import * as v from 'valibot'
import { altNamesSchema, described, header, nameSchema, text, texts, time } from '../x509/json-fields.ts'

// The JSON contract of `kcert kubelet manage`. docs/schemas/ManagedCertificate.json is generated from it.

export const managedCertificateSchema = v.object({
  ...header('ManagedCertificate'),
  generatedAt: time,
  dryRun: described(v.boolean(), 'true with --dry-run: no request was created, and nothing was written'),
  pair: text('link to the file with certificate and key'),
  signerName: v.string(),
  usages: texts,
  expirationSeconds: v.optional(v.number()),
  template: described(
    v.optional(
      v.object({
        commonName: v.string(),
        organization: texts,
        organizationalUnit: texts,
        dns: texts,
        ip: texts,
        email: texts,
        uri: texts,
      }),
    ),
    'requested subject and SANs; absent while the Node has no address',
  ),
  certificate: described(
    v.optional(
      v.object({
        path: v.string(),
        subject: nameSchema,
        subjectAltNames: altNamesSchema,
        serialNumber: v.string(),
        notBefore: time,
        notAfter: time,
        fingerprintSha256: v.string(),
      }),
    ),
    'current certificate; absent when there is none or it has expired',
  ),
  renewal: v.object({
    due: described(v.optional(v.string()), 'why a new certificate is requested at once; absent otherwise'),
    earliest: v.optional(described(time, '70 % of the validity')),
    latest: v.optional(described(time, '90 % of the validity')),
  }),
  renewals: described(v.number(), 'by this process'),
  failures: v.number(),
})

export type ManagedCertificate = v.InferOutput<typeof managedCertificateSchema>
