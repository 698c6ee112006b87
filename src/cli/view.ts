import { renderJson } from '../output/json.ts'
import { createPaint } from '../output/paint.ts'
import type { View } from '../output/view.ts'
import { renderYaml } from '../output/yaml.ts'
import type { Context } from './context.ts'
import type { ReportFormat } from './flags.ts'

/** Returns the report as JSON or YAML, or the text for people. */
export function renderReport(format: ReportFormat, report: object, text: () => string): string {
  if (format === 'json') return renderJson(report)
  return format === 'yaml' ? renderYaml(report) : text()
}

/** Returns how to write for standard output: as wide as the terminal; nothing is shortened in a pipe unless COLUMNS says so. */
export async function stdoutView({ stdoutIsTerminal, stdoutColor, width, env }: Context): Promise<View> {
  return {
    width: stdoutIsTerminal || env.COLUMNS !== undefined ? width : Number.POSITIVE_INFINITY,
    paint: await createPaint(stdoutColor),
  }
}

/** Returns how to write for standard error, where questions appear. */
export async function stderrView({ stderr, stderrColor, width }: Context): Promise<View> {
  return { width: stderr.columns ?? width, paint: await createPaint(stderrColor) }
}
