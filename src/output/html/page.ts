import { createHash } from 'node:crypto'
import { minuteOf } from '../time.ts'
import { html, Markup } from './markup.ts'
import { style } from './style.ts'

/** What a page says of itself. */
export interface PageHead {
  readonly title: string
  /** RFC 3339. */
  readonly generatedAt: string
}

const styleDigest = createHash('sha256').update(style).digest('base64')

/**
 * Returns a whole page in one file: it loads nothing, runs nothing, sends nothing, and its own policy forbids browsers to. It can be
 * mailed, kept as evidence, and opened from a disk.
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

/** A part of a page under a heading of its own. */
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
  /** name: what the row is about; short: a word or a time that is not broken. */
  readonly kind?: 'name' | 'short' | 'bar'
}

/** A table that becomes a list of cards where there is no room for columns. */
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

/** A time, to the minute. */
export function time(rfc3339: string): Markup {
  return html`<time datetime="${rfc3339}">${minuteOf(rfc3339)}</time>`
}

/** A state as a word with its colour. */
export function badge(word: string, tone: Tone): Markup {
  return html`<span class="badge ${tone}">${word}</span>`
}

export type Tone = 'good' | 'warning' | 'bad' | 'quiet'
