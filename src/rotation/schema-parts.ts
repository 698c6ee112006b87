import * as v from 'valibot'
import { timeSchema } from '../x509/json-fields.ts'

// What the schemas of this folder have in common. Only schemas import this.

export const text = v.string()
export const texts = v.array(text)
export const seconds = v.pipe(v.number(), v.minValue(0))

/** Returns a schema with a description for docs/schemas. */
export const described = <Schema extends v.GenericSchema>(schema: Schema, what: string) =>
  v.pipe(schema, v.description(what))

/** The same for a field that a report may leave out. */
export const optionalField = <Schema extends v.GenericSchema>(schema: Schema, what: string) =>
  v.optional(described(schema, what))

/** Returns what every report begins with. */
export const header = <Kind extends string>(kind: Kind) => ({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal(kind),
  generatedAt: timeSchema,
})
