import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'

/** Returns the violations of a document against the schema of its kind in docs/. */
export function violations(kind: string, document: unknown): string[] {
  const validate = validatorOf(kind)
  validate(document)
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

export function validatorOf(kind: string) {
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats.default(ajv)
  return ajv.compile(JSON.parse(readFileSync(`docs/schemas/${kind}.json`, 'utf8')))
}
