import * as v from 'valibot'
import { given } from '../errors/given.ts'

/** One thing that was looked at. `unknown` where it could not be looked at; `next` is how to find out, or how to mend it. */
export const checkLineSchema = v.object({
  id: v.string(),
  outcome: v.picklist(['ok', 'no', 'unknown']),
  detail: v.string(),
  next: v.optional(v.string()),
})

export type CheckLine = v.InferOutput<typeof checkLineSchema>

/** Returns the line of what is right. */
export function okLine(id: string, detail: string): CheckLine {
  return { id, outcome: 'ok', detail }
}

/** Returns the line of what is wrong. */
export function noLine(id: string, detail: string, next: string): CheckLine {
  return { id, outcome: 'no', detail, next }
}

/** Returns the line of what could not be looked at. */
export function unknownLine(id: string, detail: string, next?: string): CheckLine {
  return { id, outcome: 'unknown', detail, ...given({ next }) }
}
