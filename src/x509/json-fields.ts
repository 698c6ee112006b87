import * as v from 'valibot'

// Fields that the JSON documents of several commands share. Only schemas import this file, and the program imports only types of
// schemas, so valibot costs nothing at start.

/** A time of a JSON document. */
export const timeSchema = v.pipe(v.string(), v.isoTimestamp(), v.description('RFC 3339, UTC'))

/** A certificate's subject or issuer. */
export const nameSchema = v.object({
  text: v.pipe(v.string(), v.description('RFC 4514')),
  commonName: v.optional(v.string()),
  organization: v.array(v.string()),
  userUids: v.optional(
    v.pipe(v.array(v.string()), v.description("Kubernetes' user UID, OID 1.3.6.1.4.1.57683.2")),
  ),
})

export type NameFields = v.InferOutput<typeof nameSchema>

/** Returns a field's schema with its description. */
export const described = <Schema extends v.GenericSchema>(schema: Schema, meaning: string) =>
  v.pipe(schema, v.description(meaning))
export const text = (meaning: string) => described(v.string(), meaning)
export const textsSchema = v.array(v.string())
export const hexSchema = v.pipe(v.string(), v.regex(/^[0-9a-f]+$/))

/** Returns the first fields of each document. */
export const header = <Kind extends string>(kind: Kind) => ({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal(kind),
})

/** SANs of the kinds that Kubernetes copies. */
export const altNamesSchema = v.object({
  dns: textsSchema,
  ip: textsSchema,
  email: textsSchema,
  uri: textsSchema,
})
