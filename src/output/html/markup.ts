import { printable } from '../terminal.ts'

/** Text that is already HTML. Only `html` creates it, so all other text in a page is escaped. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Piece = Markup | string | number | undefined | readonly Piece[]

/**
 * Returns the template as HTML. Inserted text is escaped for elements and for attributes in double quotes. Markup and lists of
 * markup stay unchanged. Characters that hide or reorder text are shown as escapes, as on a terminal.
 */
export function html(parts: TemplateStringsArray, ...values: readonly Piece[]): Markup {
  return new Markup(parts.map((part, index) => part + pieceText(values[index])).join(''))
}

function pieceText(piece: Piece): string {
  if (piece === undefined) return ''
  if (piece instanceof Markup) return piece.text
  if (typeof piece === 'object') return piece.map(pieceText).join('')
  return printable(String(piece)).replaceAll(/[&<>"'`]/g, (character) => entities[character] ?? '')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
}
