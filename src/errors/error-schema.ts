import * as v from 'valibot'

/** An error in a report, as `errorFields` gives it. */
export const errorSchema = v.object({
  code: v.string(),
  what: v.string(),
  why: v.optional(v.string()),
  fix: v.optional(v.string()),
  next: v.optional(v.string()),
})

/** Returns a schema with what docs/schemas say of it. */
export const described = <Schema extends v.GenericSchema>(schema: Schema, what: string) =>
  v.pipe(schema, v.description(what))

/** The schema of a text. */
export const text = (what: string) => described(v.string(), what)

/** The schema of a text that may be absent. */
export const optionalText = (what: string) => v.optional(text(what))

/** The schema of what is true or absent. */
export const onlyTrue = (what: string) => v.optional(described(v.literal(true), what))
