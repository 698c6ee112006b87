import type { CertificateStatus, Severity } from '../inspection/report.ts'

type Stroke = (text: string) => string

/** The colours of words. Colour only repeats the meaning of the word, because many users do not see it. */
export interface Paint {
  readonly status: Readonly<Record<CertificateStatus, Stroke>>
  readonly severity: Readonly<Record<Severity, Stroke>>
  readonly heading: Stroke
  readonly faint: Stroke
}

/** The severity of a state: nothing to do, worth checking, wrong. */
export type Tone = 'ok' | 'warning' | 'critical'

/** 0 none, 1 16 colours, 2 256 colours, 3 16 million colours: the capability of the terminal, as src/cli detects it. */
export type ColorLevel = 0 | 1 | 2 | 3

const plain: Stroke = (text) => text

export const noPaint: Paint = {
  status: { ok: plain, warning: plain, critical: plain, expired: plain, 'not-yet-valid': plain },
  severity: { info: plain, warning: plain, critical: plain },
  heading: plain,
  faint: plain,
}

/** Returns the paint of a colour level. Loads chalk only for a level with colour. */
export async function createPaint(level: ColorLevel): Promise<Paint> {
  if (level === 0) return noPaint
  const { Chalk } = await import('chalk')
  const chalk = new Chalk({ level })
  // The sixteen named colours follow the user's theme, so they are readable on light and dark backgrounds.
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
