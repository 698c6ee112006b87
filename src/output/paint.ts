import type { CertificateStatus, Severity } from '../inspection/report.ts'

type Stroke = (text: string) => string

/** How a word is coloured. Colour repeats what the word says and never says more: many read without it. */
export interface Paint {
  readonly status: Readonly<Record<CertificateStatus, Stroke>>
  readonly severity: Readonly<Record<Severity, Stroke>>
  readonly heading: Stroke
  readonly faint: Stroke
}

/** How a state is: nothing to do, worth looking at, wrong. */
export type Tone = 'ok' | 'warning' | 'critical'

/** 0 none, 1 sixteen colours, 2 of 256, 3 of 16 million: what the terminal can do, decided by src/cli. */
export type ColorLevel = 0 | 1 | 2 | 3

const plain: Stroke = (text) => text

export const noPaint: Paint = {
  status: { ok: plain, warning: plain, critical: plain, expired: plain, 'not-yet-valid': plain },
  severity: { info: plain, warning: plain, critical: plain },
  heading: plain,
  faint: plain,
}

/** Returns the paint of a colour level. chalk is loaded only where there is colour. */
export async function createPaint(level: ColorLevel): Promise<Paint> {
  if (level === 0) return noPaint
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level })
  // The sixteen named colours follow the user's theme, so they can be read on light and on dark.
  return {
    status: {
      ok: chalk.green,
      warning: chalk.yellow,
      critical: chalk.red.bold,
      expired: chalk.red.bold,
      'not-yet-valid': chalk.red.bold,
    },
    severity: { info: chalk.cyan, warning: chalk.yellow, critical: chalk.red.bold },
    heading: chalk.bold,
    faint: chalk.dim,
  }
}
