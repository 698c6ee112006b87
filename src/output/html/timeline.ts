import { html, type Markup } from './markup.ts'
import type { Tone } from './page.ts'

// Certificates expire in days or in ten years. To show both, the scale of the timeline grows with the distance from now.

const day = 86_400
const pastShare = 14
const longestPast = 400 * day
const longestAhead = 3_800 * day

/** Returns the position of a time, in percent of the width, from its seconds relative to now. */
export function positionOf(seconds: number): number {
  const share = (of: number, most: number): number =>
    Math.log1p(Math.min(of, most) / day) / Math.log1p(most / day)
  const place =
    seconds < 0
      ? pastShare * (1 - share(-seconds, longestPast))
      : pastShare + (100 - pastShare) * share(seconds, longestAhead)
  return Math.round(place * 10) / 10
}

const ticks: readonly (readonly [label: string, seconds: number])[] = [
  ['now', 0],
  ['7d', 7 * day],
  ['30d', 30 * day],
  ['90d', 90 * day],
  ['1y', 365 * day],
  ['3y', 3 * 365 * day],
  ['10y', 3_650 * day],
]

/** Returns the scale above the bars. */
export function axis(): Markup {
  return html`<svg role="img" aria-label="scale: now, 7 days, 30 days, 90 days, 1 year, 3 years, 10 years">${ticks.map(
    ([label, seconds]) =>
      html`<text x="${positionOf(seconds)}%" y="15" text-anchor="${label === '10y' ? 'end' : 'middle'}">${label}</text>`,
  )}</svg>`
}

/** Returns the time between now and an expiry as a bar. `says` is the same in words, for screen readers. */
export function bar(secondsLeft: number, tone: Tone, says: string): Markup {
  const now = positionOf(0)
  const end = positionOf(secondsLeft)
  const [from, to] = [Math.min(now, end), Math.max(now, end)]
  return html`<svg role="img" aria-label="${says}"><line class="axis" x1="0%" x2="100%" y1="12" y2="12"/>${ticks.map(
    ([, seconds]) =>
      html`<line class="axis" x1="${positionOf(seconds)}%" x2="${positionOf(seconds)}%" y1="4" y2="20"/>`,
  )}<rect class="${tone}" x="${from}%" y="7" width="${Math.max(Math.round((to - from) * 10) / 10, 0.4)}%" height="10" rx="3"/><line class="now" x1="${now}%" x2="${now}%" y1="2" y2="22"/></svg>`
}
