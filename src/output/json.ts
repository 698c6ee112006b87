import { harmlessJson } from '../errors/hidden-text.ts'

/** Returns the document as JSON that is safe to look at: hidden characters of names are \u escapes, which readers undo. */
export function renderJson(document: object): string {
  return `${harmlessJson(JSON.stringify(document, null, 2))}\n`
}
