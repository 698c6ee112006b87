import * as v from 'valibot'
import { header, texts } from '../x509/json-fields.ts'

// The schema of a file for `kcert kubelet manage --template`. docs/schemas/CertificateTemplate.json is generated from it.

export const templateSchema = v.strictObject({
  ...header('CertificateTemplate'),
  subject: v.optional(
    v.strictObject({
      commonName: v.optional(v.string()),
      organization: v.optional(texts),
      organizationalUnit: v.optional(texts),
    }),
  ),
  subjectAltNames: v.optional(
    v.strictObject({
      dns: v.optional(texts),
      ip: v.optional(texts),
      email: v.optional(texts),
      uri: v.optional(texts),
    }),
  ),
})

export type TemplateDocument = v.InferOutput<typeof templateSchema>
