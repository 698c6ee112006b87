// biome-ignore-all lint/style/noNonNullAssertion: each column has one cell and one width per row
import type { Paint } from './paint.ts'
import { isPlain, printable } from './terminal.ts'
import type { View } from './view.ts'
import { type Cut, displayWidth, padded, shortened } from './width.ts'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => string
  /**
   * Cells may be shortened to this width when the terminal is narrow. Absent for names that users copy, which are never
   * shortened.
   */
  readonly shrinkTo?: number
  /** The minimum width while another column can still be shortened. */
  readonly preferredMinWidth?: number
  /** Where a shortened cell is cut (default end). */
  readonly cut?: Cut
  /** When shortening is not enough, the column with the highest number is dropped first. Absent: never dropped. */
  readonly dropRank?: number
  readonly paint?: (row: Row, cell: string) => string
}

/** The name of a state, and its colour. */
export type StatusText = readonly [word: string, tone: keyof Paint['status']]

export const yesOrNo = { true: ['yes', 'ok'], false: ['no', 'critical'] } as const

/** Returns the column of a state. */
export function statusColumn<Row>(
  title: string,
  { status }: Paint,
  of: (row: Row) => StatusText,
): Column<Row> {
  return { title, cell: (row) => of(row)[0], paint: (row, cell) => status[of(row)[1]](cell) }
}

/** Returns the number of rows in each state: ": 3 approved, 1 denied". */
export function countsText(
  counts: Readonly<Record<string, number>>,
  said: Readonly<Record<string, StatusText>>,
): string {
  const parts = Object.entries(counts).map(
    ([outcome, count]) => `${count.toLocaleString('en')} ${said[outcome]?.[0] ?? outcome}`,
  )
  return parts.length === 0 ? '' : `: ${parts.join(', ')}`
}

/** Returns the lines of a table in a view; empty for no rows. */
export function table<Row>(
  { width, paint, hasHeadings = true }: View,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
): string[] {
  return rows.length === 0 ? [] : tableLines(columns, rows, width, paint, hasHeadings)
}

const gap = '  '
// Precedes a cell on a separate line.
const below = '    '
// One huge name must not move every other row out of view, or add padding of its own length to 10,000 rows.
const widestPadding = 120

interface Fitted<Row> {
  readonly column: Column<Row>
  readonly cells: readonly string[]
  /** The width of each cell, measured once: detecting wide characters takes longer than joining the row. */
  readonly widths: readonly number[]
  readonly longest: number
  width: number
}

/**
 * Returns the lines of a table: a heading, then a line for each row. Until the rows fit, columns are shortened, then dropped by
 * rank. A row that still does not fit has its last cell on a separate line. Without a limit (Infinity, for pipes) nothing is
 * shortened. Columns without content are left out. Every cell is made printable here.
 */
export function tableLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
  paint: Paint,
  hasHeadings = true,
): string[] {
  const fitted = fitting(
    columns.map((column) => measured(column, rows)).filter(({ cells }) => cells.some((cell) => cell !== '')),
    width,
  )
  const last = fitted.length - 1
  const heading = fitted.map(({ column, width: to }, i) =>
    i === last ? column.title : padded(column.title, to),
  )
  const lines = hasHeadings ? headingLines(heading, width).map((line) => paint.heading(line)) : []
  return lines.concat(rows.map((row, r) => line(fitted, row, r, width)))
}

/** The last title is on a separate line if its cells are. */
function headingLines(titles: readonly string[], limit: number): string[] {
  const whole = titles.join(gap)
  if (titles.length < 2 || displayWidth(whole) <= limit) return [whole]
  return [titles.slice(0, -1).join(gap).trimEnd(), `${below}${titles.at(-1)}`]
}

/** Returns the width in cells of a table's longest line when nothing is shortened. */
export function tableWidth<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): number {
  return columns.reduce((sum, column) => sum + measured(column, rows).longest + gap.length, -gap.length)
}

function line<Row>(fitted: readonly Fitted<Row>[], row: Row, index: number, limit: number): string {
  let text = ''
  // The width of the text and of the space before the next cell.
  let at = 0
  let spaces = 0
  // Not for…of, which creates an object for each cell until the loop is compiled.
  for (let i = 0; i < fitted.length; i++) {
    const { column, cells, widths, width } = fitted[i]!
    let shown = cells[index]!
    let taken = widths[index]!
    if (limit !== Infinity && taken > width) {
      shown = shortened(shown, width, column.cut)
      taken = displayWidth(shown)
    }
    // The path is not shortened. If the terminal wrapped it, the columns would break too.
    if (i > 0 && i === fitted.length - 1 && at + spaces + taken > limit) {
      return `${text}\n${below}${column.paint === undefined ? shown : column.paint(row, shown)}`
    }
    if (shown !== '') {
      at += spaces + taken
      text += blank(spaces) + (column.paint === undefined ? shown : column.paint(row, shown))
      spaces = 0
    }
    spaces += Math.max(0, width - taken) + gap.length
  }
  return text
}

const blanks: string[] = []

/** Returns a string of spaces. Cached, because one is used between every two cells. */
function blank(count: number): string {
  blanks[count] ??= ' '.repeat(count)
  return blanks[count]
}

function measured<Row>(column: Column<Row>, rows: readonly Row[]): Fitted<Row> {
  const cells = new Array<string>(rows.length)
  const widths = new Array<number>(rows.length)
  let longest = displayWidth(column.title)
  let last = ''
  let shown = ''
  let width = 0
  rows.forEach((row, r) => {
    const cell = column.cell(row)
    // In a sorted table, adjacent rows often have equal cells.
    if (cell !== last) {
      last = cell
      const isShownAsItIs = isPlain(cell)
      shown = isShownAsItIs ? cell : printable(cell)
      width = isShownAsItIs ? cell.length : displayWidth(shown)
      if (width > longest) longest = width
    }
    cells[r] = shown
    widths[r] = width
  })
  return { column, cells, widths, longest, width: Math.min(longest, widestPadding) }
}

function fitting<Row>(fitted: Fitted<Row>[], limit: number): Fitted<Row>[] {
  if (limit === Infinity) return fitted
  let kept = fitted
  for (;;) {
    for (const one of kept) one.width = Math.min(one.longest, widestPadding)
    if (shrink(kept, limit, gladFloorOf) || shrink(kept, limit, floorOf)) return kept
    const [victim] = kept.toSorted((a, b) => rankOf(b) - rankOf(a))
    if (victim?.column.dropRank === undefined) return kept
    kept = kept.filter((one) => one !== victim)
  }
}

function rankOf<Row>({ column: { dropRank = Number.NEGATIVE_INFINITY } }: Fitted<Row>): number {
  return dropRank
}

// Takes cells from the widest shrinkable column until all fit. Returns whether they do.
function shrink<Row>(
  kept: readonly Fitted<Row>[],
  limit: number,
  floor: (column: Column<Row>) => number,
): boolean {
  let excess = kept.reduce((sum, { width }) => sum + width, 0) + gap.length * (kept.length - 1) - limit
  while (excess > 0) {
    const flexible = kept
      .filter(({ column, width }) => column.shrinkTo !== undefined && width > floor(column))
      .sort((a, b) => b.width - a.width)
    const widest = flexible[0]
    if (widest === undefined) return false
    // down to the next widest or to the column's minimum, in one step instead of one for each cell
    const next = Math.max(floor(widest.column), flexible[1]?.width ?? 0)
    const step = Math.min(excess, Math.max(1, widest.width - next))
    widest.width -= step
    excess -= step
  }
  return true
}

function floorOf<Row>({ shrinkTo = 0, title }: Column<Row>): number {
  return Math.max(shrinkTo, displayWidth(title))
}

function gladFloorOf<Row>(column: Column<Row>): number {
  return Math.max(column.preferredMinWidth ?? 0, floorOf(column))
}
