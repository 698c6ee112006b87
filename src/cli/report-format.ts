import * as Flags from '@oclif/core/flags'
import { renderJson } from '../output/json.ts'
import { renderYaml } from '../output/yaml.ts'

export const reportFormats = ['text', 'json', 'yaml'] as const

export type ReportFormat = (typeof reportFormats)[number]

/** -o of a command that answers with one report. */
export const reportFormatFlag = Flags.option({
  char: 'o',
  description: 'how to show what was done',
  options: reportFormats,
  default: 'text',
})

/** Returns the report as JSON or YAML, or the text for people. */
export function renderReport(format: ReportFormat, report: object, text: () => string): string {
  if (format === 'json') return renderJson(report)
  return format === 'yaml' ? renderYaml(report) : text()
}
