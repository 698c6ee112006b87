import * as v from 'valibot'
import { nameSchema, timeSchema as time } from '../x509/json-fields.ts'

// The JSON contract of `kcert kubelet manage`. docs/schemas/ManagedCertificate.json is generated from it.

const texts = v.array(v.string())

export const managedCertificateSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('ManagedCertificate'),
  generatedAt: time,
  dryRun: v.pipe(v.boolean(), v.description('nothing was asked for and nothing was written')),
  pair: v.pipe(v.string(), v.description('the link that leads to certificate and key')),
  signerName: v.string(),
  usages: texts,
  expirationSeconds: v.optional(v.number()),
  template: v.pipe(
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
    v.description('what is asked for; absent while the Node has no address'),
  ),
  certificate: v.pipe(
    v.optional(
      v.object({
        path: v.string(),
        subject: nameSchema,
        subjectAltNames: v.object({ dns: texts, ip: texts, email: texts, uri: texts }),
        serialNumber: v.string(),
        notBefore: time,
        notAfter: time,
        fingerprintSha256: v.string(),
      }),
    ),
    v.description('what is held; absent when there is none, or it has expired'),
  ),
  renewal: v.object({
    due: v.pipe(
      v.optional(v.string()),
      v.description('why a new one is asked for at once; absent when none is'),
    ),
    earliest: v.optional(v.pipe(time, v.description('70 % of its life'))),
    latest: v.optional(v.pipe(time, v.description('90 % of its life'))),
  }),
  renewals: v.pipe(v.number(), v.description('by this process')),
  failures: v.number(),
})

export type ManagedCertificate = v.InferOutput<typeof managedCertificateSchema>
