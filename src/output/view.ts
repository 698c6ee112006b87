import { noPaint, type Paint } from './paint.ts'

/** What a renderer knows of the place that it writes for. */
export interface View {
  /** Columns; Infinity where nothing must be shortened, as in a pipe. */
  readonly width: number
  readonly paint: Paint
  /** Headings of tables; false with --no-headers. */
  readonly hasHeadings?: boolean
  /** True with -o wide: more columns than by default. */
  readonly isWide?: boolean
}

/** For what is read in files and logs as often as on a terminal: nothing is cut, wrapped or coloured. */
export const wholeWidth: View = { width: Number.POSITIVE_INFINITY, paint: noPaint }
