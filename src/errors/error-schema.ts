import * as v from 'valibot'

/** An error in a report, as `errorFields` gives it. */
export const errorSchema = v.object({
  code: v.string(),
  what: v.string(),
  why: v.optional(v.string()),
  next: v.optional(v.string()),
})
