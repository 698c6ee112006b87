import { printable } from '../terminal.ts'

/** Text that is HTML already. Only `html` makes it, so that whatever else gets into a page is escaped. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Piece = Markup | string | number | undefined | readonly Piece[]

/**
 * Returns the template as HTML. What is put in is text and is escaped, for elements and for attributes in double quotes, the one who
 * wrote it; markup and lists of it stay as they are. Characters that hide or turn text are shown as escapes, as on a terminal.
 */
export function html(parts: TemplateStringsArray, ...values: readonly Piece[]): Markup {
  return new Markup(parts.map((part, index) => part + pieceText(values[index])).join(''))
}

function pieceText(piece: Piece): string {
  if (piece === undefined) return ''
  if (piece instanceof Markup) return piece.text
  if (typeof piece === 'object') return piece.map(pieceText).join('')
  return escaped(printable(String(piece)))
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"'`]/g, (character) => entities[character] ?? '')
}
