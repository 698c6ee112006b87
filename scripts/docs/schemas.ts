import { toJsonSchema } from '@valibot/to-json-schema'
import type { GenericSchema } from 'valibot'
import { inspectionReportSchema } from '../../src/inspection/report.ts'

/** Every kind of JSON document that kcert prints. */
const kinds: Record<string, GenericSchema> = {
  InspectionReport: inspectionReportSchema,
}

/** Returns docs/schemas/<kind>.json for every kind of JSON document. */
export function schemaFiles(): [path: string, text: string][] {
  return Object.entries(kinds).map(([kind, schema]) => {
    const body = { title: kind, ...toJsonSchema(schema, { errorMode: 'throw' }) }
    return [`docs/schemas/${kind}.json`, `${JSON.stringify(body, null, 2)}\n`]
  })
}
