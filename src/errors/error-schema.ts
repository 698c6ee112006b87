import * as v from 'valibot'

/** An error in a report, as `errorFields` returns it. */
export const errorSchema = v.object({
  code: v.string(),
  what: v.string(),
  why: v.optional(v.string()),
  fix: v.optional(v.string()),
  next: v.optional(v.string()),
})

/** Returns a schema with its description in docs/schemas. */
export const described = <Schema extends v.GenericSchema>(schema: Schema, what: string) =>
  v.pipe(schema, v.description(what))

/** Returns the schema of a text. */
export const text = (what: string) => described(v.string(), what)

/** Returns the schema of an optional text. */
export const optionalText = (what: string) => v.optional(text(what))

/** Returns the schema of a field that is true or absent. */
export const onlyTrue = (what: string) => v.optional(described(v.literal(true), what))
