import * as v from 'valibot'
import { optionalField, text, texts, time } from '../errors/json-fields.ts'

export * from '../errors/json-fields.ts'

/** A certificate's subject or issuer. */
export const nameSchema = v.object({
  text: text('RFC 4514'),
  commonName: v.optional(v.string()),
  organization: texts,
  userUids: optionalField(texts, "Kubernetes' user UID, OID 1.3.6.1.4.1.57683.2"),
})

export type NameFields = v.InferOutput<typeof nameSchema>

/** SANs of the kinds that Kubernetes copies. */
export const altNamesSchema = v.object({ dns: texts, ip: texts, email: texts, uri: texts })

/** Returns the schema of a public key, with that of its digest. */
export const publicKeyOf = <Digest extends v.GenericSchema>(sha256: Digest) =>
  v.object({ algorithm: v.string(), bits: v.optional(v.number()), curve: v.optional(v.string()), sha256 })

/** The first fields of a certificate. */
export const certificateFields = {
  subject: nameSchema,
  issuer: nameSchema,
  serialNumber: v.pipe(v.string(), v.regex(/^-?[0-9a-f]+$/), v.description('hexadecimal')),
  notBefore: time,
  notAfter: time,
}
