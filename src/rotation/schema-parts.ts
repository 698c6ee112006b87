import * as v from 'valibot'
import { time } from '../x509/json-fields.ts'

// Common parts of the schemas in this folder. Only schemas import this file.

export const text = v.string()
export const texts = v.array(text)
export const seconds = v.pipe(v.number(), v.minValue(0))

/** Returns a schema with a description for docs/schemas. */
export const described = <Schema extends v.GenericSchema>(schema: Schema, what: string) =>
  v.pipe(schema, v.description(what))

/** Returns such a schema for an optional field. */
export const optionalField = <Schema extends v.GenericSchema>(schema: Schema, what: string) =>
  v.optional(described(schema, what))

/** Returns the common first fields of every report. */
export const header = <Kind extends string>(kind: Kind) => ({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal(kind),
  generatedAt: time,
})
