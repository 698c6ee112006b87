import * as v from 'valibot'
import { header as firstFields, time } from '../x509/json-fields.ts'

export { described, objects, optionalField, texts } from '../x509/json-fields.ts'

// Common parts of the schemas in this folder. Only schemas import this file.

export const text = v.string()
export const seconds = v.pipe(v.number(), v.minValue(0))

/** Returns the common first fields of every report. */
export const header = <Kind extends string>(kind: Kind) => ({ ...firstFields(kind), generatedAt: time })
