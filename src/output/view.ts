import { noPaint, type Paint } from './paint.ts'

/** The properties of the output device that a renderer needs. */
export interface View {
  /** The width in columns; Infinity where nothing must be shortened, as in a pipe. */
  readonly width: number
  readonly paint: Paint
  /** Headings of tables; false with --no-headers. */
  readonly hasHeadings?: boolean
  /** True with -o wide: more columns than by default. */
  readonly isWide?: boolean
}

/** For output that is also read in files and logs: nothing is cut, wrapped or coloured. */
export const wholeWidth: View = { width: Number.POSITIVE_INFINITY, paint: noPaint }
