import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import { plainValue } from '../kubeconfig/node.ts'
import { schemaFault } from '../kubeconfig/schema-fault.ts'
import { parseIp } from '../x509/ip.ts'
import { type Template, templateOf } from './template.ts'
import type { TemplateDocument } from './template-schema.ts'

/**
 * Returns the template in a file of kind CertificateTemplate. `source` is its name, for messages. Throws KCERT_TEMPLATE_INVALID
 * with the line, the invalid value and the allowed values; nothing of an invalid file is used.
 */
export async function readTemplate(text: string, source: string): Promise<Template> {
  const { documents, defects } = await readDocuments(text)
  const [defect] = defects
  if (defect !== undefined) throw invalid(`${source} line ${defect.line ?? 1}`, defect.reason)
  const [document, second] = documents
  if (document === undefined || second !== undefined)
    throw invalid(source, `it has ${documents.length} documents, and a template is one`)
  const { templateSchema } = await import('./template-schema.ts')
  const value = plainValue(document) as TemplateDocument
  const fault = await schemaFault({ document, text, source }, templateSchema, value)
  if (fault !== undefined) throw invalid(fault.place, fault.why)
  const { subject = {}, subjectAltNames = {} } = value
  const wrong = subjectAltNames.ip?.find((address) => parseIp(address) === undefined)
  if (wrong !== undefined) throw invalid(source, `${JSON.stringify(wrong)} is not an IP address`)
  const template = templateOf({ ...subject, ...subjectAltNames })
  const isEmpty = Object.values(template).every((field) => field.length === 0)
  if (isEmpty) throw invalid(source, 'it has no subject and no SAN')
  return template
}

function invalid(place: string, why: string): KcertError {
  return new KcertError('KCERT_TEMPLATE_INVALID', place, {
    why,
    fix: 'check it in an editor with docs/schemas/CertificateTemplate.json',
  })
}
