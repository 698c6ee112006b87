import * as v from 'valibot'

/** One thing that was looked at. `unknown` where it could not be looked at; `next` is how to find out, or how to mend it. */
export const checkLineSchema = v.object({
  id: v.string(),
  outcome: v.picklist(['ok', 'no', 'unknown']),
  detail: v.string(),
  next: v.optional(v.string()),
})

export type CheckLine = v.InferOutput<typeof checkLineSchema>
