import { createHash } from 'node:crypto'
import { minuteOf } from '../time.ts'
import { html, Markup } from './markup.ts'
import { style } from './style.ts'

/** The title and the time of a page. */
export interface PageHead {
  readonly title: string
  /** RFC 3339. */
  readonly generatedAt: string
}

const styleDigest = createHash('sha256').update(style).digest('base64')

/**
 * Returns a page in one file. It loads nothing, runs nothing and sends nothing, and its content security policy enforces this.
 * The file can be mailed, archived as evidence, and opened from a disk.
 */
export function page({ title, generatedAt }: PageHead, body: readonly Markup[]): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-${new Markup(styleDigest)}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>${new Markup(style)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
<footer>Created by kcert at <time datetime="${generatedAt}">${generatedAt}</time>. All times are UTC.</footer>
</body>
</html>
`.text
}

/** Returns a section of a page with a heading. */
export function section(heading: string, body: Markup): Markup {
  return html`<section>
<h2>${heading}</h2>
${body}
</section>
`
}

/** One column of a table. */
export interface HtmlColumn<Row> {
  readonly title: string
  readonly cell: (row: Row) => Markup | string
  /** name: the name of the row's item. short: a word or a time that is not wrapped. */
  readonly kind?: 'name' | 'short' | 'bar'
}

/** Returns a table that becomes a list of cards on narrow screens. */
export function table<Row>(
  caption: string,
  columns: readonly HtmlColumn<Row>[],
  rows: readonly Row[],
  scale: Markup | undefined = undefined,
): Markup {
  return html`<table role="table">
<caption>${caption}</caption>
<thead role="rowgroup"><tr role="row">${columns.map(({ title, kind }) => html`<th scope="col" role="columnheader">${title}${kind === 'bar' ? scale : undefined}</th>`)}</tr></thead>
<tbody role="rowgroup">
${rows.map((row) => html`<tr role="row">${columns.map((column) => cellOf(column, row))}</tr>\n`)}</tbody>
</table>
`
}

function cellOf<Row>({ title, cell, kind }: HtmlColumn<Row>, row: Row): Markup {
  const content = cell(row)
  const classOf = kind === undefined ? '' : html` class="${kind}"`
  return kind === 'name'
    ? html`<th scope="row" role="rowheader"${classOf} data-title="${title}">${content}</th>`
    : html`<td role="cell"${classOf} data-title="${title}">${content}</td>`
}

/** Returns a time, to the minute. */
export function time(rfc3339: string): Markup {
  return html`<time datetime="${rfc3339}">${minuteOf(rfc3339)}</time>`
}

/** Returns a state as a coloured word. */
export function badge(word: string, tone: Tone): Markup {
  return html`<span class="badge ${tone}">${word}</span>`
}

export type Tone = 'good' | 'warning' | 'bad' | 'quiet'
