import * as v from 'valibot'
import { given } from '../errors/given.ts'

/** The result of one check: `unknown` where the fact is unavailable. `next` is the command that finds it out or fixes it. */
export const checkLineSchema = v.object({
  id: v.string(),
  outcome: v.picklist(['ok', 'failed', 'unknown']),
  detail: v.string(),
  next: v.optional(v.string()),
})

export type CheckLine = v.InferOutput<typeof checkLineSchema>

/** Returns a passed check. */
export function okLine(id: string, detail: string): CheckLine {
  return { id, outcome: 'ok', detail }
}

/** Returns a failed check. */
export function noLine(id: string, detail: string, next: string): CheckLine {
  return { id, outcome: 'failed', detail, next }
}

/** Returns a check whose facts are unavailable. */
export function unknownLine(id: string, detail: string, next?: string): CheckLine {
  return { id, outcome: 'unknown', detail, ...given({ next }) }
}
