import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'

// The schema of a file for `kcert kubelet manage --template`. docs/schemas/CertificateTemplate.json is generated from it.

export const templateSchema = v.strictObject({
  ...json.header('CertificateTemplate'),
  subject: v.optional(
    v.strictObject({
      commonName: v.optional(v.string()),
      organization: v.optional(json.texts),
      organizationalUnit: v.optional(json.texts),
    }),
  ),
  subjectAltNames: v.optional(
    v.strictObject({
      dns: v.optional(json.texts),
      ip: v.optional(json.texts),
      email: v.optional(json.texts),
      uri: v.optional(json.texts),
    }),
  ),
})

export type TemplateDocument = v.InferOutput<typeof templateSchema>
