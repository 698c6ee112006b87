import type { Paint } from './paint.ts'

/** What a renderer knows of the place that it writes for. */
export interface View {
  /** Columns; Infinity where nothing must be shortened, as in a pipe. */
  readonly width: number
  readonly paint: Paint
}
