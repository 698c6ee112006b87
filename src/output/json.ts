import { harmlessJson } from '../errors/hidden-text.ts'

/** Returns the document as JSON that is safe to display: invisible characters of names are \u escapes, which parsers undo. */
export function renderJson(document: object): string {
  return `${harmlessJson(JSON.stringify(document, null, 2))}\n`
}
