import { renderJson } from '../output/json.ts'
import { createPaint } from '../output/paint.ts'
import type { View } from '../output/view.ts'
import { renderYaml } from '../output/yaml.ts'
import type { Context } from './context.ts'
import type { ReportFormat } from './flags.ts'

/** Returns the report as JSON or YAML, or as text. */
export function renderReport(format: ReportFormat, report: object, text: () => string): string {
  if (format === 'json') return renderJson(report)
  return format === 'yaml' ? renderYaml(report) : text()
}

/** Returns the view for standard output: as wide as the terminal. In a pipe nothing is shortened unless COLUMNS is set. */
export async function stdoutView({ stdoutIsTerminal, stdoutColor, width, env }: Context): Promise<View> {
  return {
    width: stdoutIsTerminal || env.COLUMNS !== undefined ? width : Number.POSITIVE_INFINITY,
    paint: await createPaint(stdoutColor),
  }
}

/** Returns the view for standard error, where prompts appear. */
export async function stderrView({ stderr, stderrColor, width }: Context): Promise<View> {
  return { width: stderr.columns ?? width, paint: await createPaint(stderrColor) }
}
