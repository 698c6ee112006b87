import { formatIp, parseIp } from '../x509/ip.ts'
import type { Validity } from './schedule.ts'

/** The purpose of a certificate. */
export interface Template {
  readonly commonName: string
  readonly organization: readonly string[]
  readonly organizationalUnit: readonly string[]
  readonly dns: readonly string[]
  readonly ip: readonly string[]
  readonly email: readonly string[]
  readonly uri: readonly string[]
}

/** The facts of the held certificate that determine its renewal. */
export type HeldCertificate = Validity & Pick<Template, 'commonName' | 'organization' | 'dns' | 'ip'>

type Given = { readonly [Field in keyof Template]?: Template[Field] | undefined }

/** Returns the template of a subject and names; missing fields are empty. */
export function templateOf(given: Given): Template {
  const list = (field: Exclude<keyof Template, 'commonName'>): readonly string[] => given[field] ?? []
  return {
    commonName: given.commonName ?? '',
    organization: list('organization'),
    organizationalUnit: list('organizationalUnit'),
    dns: list('dns'),
    ip: list('ip'),
    email: list('email'),
    uri: list('uri'),
  }
}

/**
 * Returns why a certificate does not match a template, or undefined when it does. Additional names and groups are accepted, as in
 * client-go; mailboxes, URIs and units are not compared.
 */
export function unmetBy(
  certificate: HeldCertificate | undefined,
  template: Template | undefined,
): string | undefined {
  if (certificate === undefined) return 'there is no certificate'
  if (template === undefined) return undefined
  const { commonName } = template
  if (certificate.commonName !== commonName)
    return `its common name is "${certificate.commonName}", not "${commonName}"`
  for (const [field, word] of [
    ['dns', 'the name'],
    ['ip', 'the address'],
    ['organization', 'the group'],
  ] as const) {
    const present = new Set(certificate[field].map(plain))
    const missing = template[field].find((name) => !present.has(plain(name)))
    if (missing !== undefined) return `it lacks ${word} ${missing}`
  }
  return undefined
}

/** True when both templates are equal. */
export function isSameTemplate(one: Template | undefined, other: Template | undefined): boolean {
  return one === other || JSON.stringify(one && sorted(one)) === JSON.stringify(other && sorted(other))
}

function sorted(template: Template): unknown[] {
  const { commonName, organization, organizationalUnit, dns, ip, email, uri } = template
  const lists = [organization, organizationalUnit, dns, ip.map(plain), email, uri]
  return [commonName, ...lists.map((list) => list.toSorted())]
}

/** Returns the canonical spelling of an address. */
function plain(name: string): string {
  const bytes = parseIp(name)
  return bytes === undefined ? name : formatIp(bytes)
}
