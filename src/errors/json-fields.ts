import * as v from 'valibot'

// Fields that the JSON documents of several commands share. Only schemas import this file, and the program imports only types of
// schemas, so valibot costs nothing at start.

/** Returns a schema with its description in docs/schemas. */
export const described = <Schema extends v.GenericSchema>(schema: Schema, what: string) =>
  v.pipe(schema, v.description(what))

/** Returns the schema of a text. */
export const text = (what: string) => described(v.string(), what)

/** Returns the schema of an optional field, with its description. */
export const optionalField = <Schema extends v.GenericSchema>(schema: Schema, what: string) =>
  v.optional(described(schema, what))

/** Returns the schema of an optional text. */
export const optionalText = (what: string) => optionalField(v.string(), what)

/** Returns the schema of a list of objects with these fields. */
export const objects = <Fields extends v.ObjectEntries>(fields: Fields) => v.array(v.object(fields))

/** Returns the schema of a field that is true or absent. */
export const onlyTrue = (what: string) => optionalField(v.literal(true), what)

export const texts = v.array(v.string())

export const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]+$/))

/** A time of a JSON document. */
export const time = v.pipe(v.string(), v.isoTimestamp(), v.description('RFC 3339, UTC'))

/** Returns the first fields of each document. */
export const header = <Kind extends string>(kind: Kind) => ({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal(kind),
})

/** Advice in a report, as `adviceFields` returns it. */
export const adviceEntries = { fix: v.optional(v.string()), next: v.optional(v.string()) }

/** An error in a report, as `errorFields` returns it. */
export const errorSchema = v.object({
  code: v.string(),
  what: v.string(),
  why: v.optional(v.string()),
  ...adviceEntries,
})
