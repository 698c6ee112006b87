import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import { entriesOf, isTrue, itemsOf, type Node, textOf, valueAt } from '../kubeconfig/node.ts'
import { parseDuration } from '../pki/duration.ts'
import { isUsage, usages as knownUsages, type Usage } from '../pki/usages.ts'
import { goAttributeTypes } from '../x509/go-name.ts'
import type { SigningProfile } from './profile.ts'
import { kubernetesBackdateMs, kubernetesTtlMs } from './validity.ts'

// A file of signing profiles: kcert's own YAML,
//
//     default:
//       usages: [digital signature, key encipherment, server auth]
//       duration: 8760h
//     profiles:
//       client:
//         usages: [digital signature, client auth]
//         duration: 24h
//
// or cfssl's signing configuration, with "expiry" and below "signing". Profiles may also have ocsp_url,
// have crl_url, issuer_urls, backdate and subjectAttributes. As in cfssl, those of the default apply where a profile has none.

interface Format {
  /** Where "default" and "profiles" are. */
  readonly root: Node
  readonly duration: 'duration' | 'expiry'
  /** cfssl ignores unknown fields. */
  readonly isCfssl: boolean
}

/** Returns the named profile of a file, or its default. Throws KCERT_PROFILE_INVALID. */
export async function readProfile(text: string, file: string, name?: string): Promise<SigningProfile> {
  const format = await readFormat(text, file)
  const fallback = valueAt(format.root, 'default')
  const profiles = valueAt(format.root, 'profiles')
  // A cfssl configuration may have a profile called "default" as well.
  const node =
    name === undefined ? fallback : (valueAt(profiles, name) ?? (name === 'default' ? fallback : undefined))
  if (node === undefined) throw noSuchProfile(file, name, profiles)
  const where = `${file}: ${name === undefined ? 'default' : `profile ${name}`}`
  return profileOf(format, where, node, fallback)
}

async function readFormat(text: string, file: string): Promise<Format> {
  const { documents, defects } = await readDocuments(text)
  const [root] = documents
  if (defects.length > 0 || documents.length !== 1 || root?.kind !== 'map')
    throw invalid(
      `${file} is not a file of signing profiles`,
      defects[0]?.reason ?? 'it is not one YAML or JSON object',
    )
  const signing = valueAt(root, 'signing')
  if (signing !== undefined) return { root: signing, duration: 'expiry', isCfssl: true }
  const unknown = entriesOf(root).find(
    ([key]) => !['apiVersion', 'kind', 'default', 'profiles'].includes(key),
  )
  if (unknown !== undefined)
    throw invalid(
      `${file} has an unknown field "${unknown[0]}"`,
      'a file of profiles has "default" and "profiles", or cfssl\'s "signing"',
    )
  return { root, duration: 'duration', isCfssl: false }
}

const ownMembers = 'usages duration backdate subjectAttributes ocsp_url crl_url issuer_urls'.split(' ')

/** cfssl features that kcert does not support. Ignoring them would issue other certificates than intended. */
const notFollowed: Readonly<Record<string, string>> = {
  copy_extensions: 'like kube-controller-manager, kcert never copies requested extensions',
  name_whitelist: 'names are checked before signing, by kcert csr approve --policy',
  csrwhitelist: 'names are checked before signing, by kcert csr approve --policy',
  policies: 'kcert writes no certificate policies',
  ocsp_no_check: 'no OCSP responder certificates are issued',
  ct_log_servers: 'certificate transparency logs are for public CAs',
  lint_error_level: 'kcert has no zlint',
  remote: 'kcert signs locally, with the CA of --ca',
  auth_remote: 'kcert signs locally, with the CA of --ca',
  not_before: 'as with kube-controller-manager, certificates are backdated by 5 minutes',
  not_after: 'the validity is "expiry"',
  clientprovidesserialnumbers: 'kcert chooses the serial numbers',
}

/** Returns a profile; `fallback` is the default of its file. */
function profileOf(
  { duration, isCfssl }: Format,
  where: string,
  node: Node,
  fallback: Node | undefined,
): SigningProfile {
  if (node.kind !== 'map') throw invalid(`${where} is not an object`, 'a profile has usages and a validity')
  refuseWhatIsNotFollowed(node, where, isCfssl)

  const durationOf = (name: string): number | undefined => {
    const text = textOf(member(node, name))
    if (text === undefined || text === '') return undefined
    try {
      return parseDuration(text)
    } catch (cause) {
      const { message, why = '' } = cause as KcertError
      throw invalid(`${where}: ${name}: ${message}`, why)
    }
  }
  /** One text or a list of them; the default's where the profile has none. */
  const texts = (name: string): string[] => {
    const own = member(node, name) ?? member(fallback, name)
    const items = own?.kind === 'list' ? own.items : own === undefined ? [] : [own]
    return items.map((item) => textOf(item) ?? '').filter((text) => text !== '')
  }

  const usages = usagesOf(node, where)
  const ttlMs = durationOf(duration)
  if (ttlMs !== undefined && ttlMs <= 0)
    throw invalid(`${where} has a validity that is not positive`, 'its certificates would never be valid')
  if (ttlMs === undefined && isCfssl)
    throw invalid(`${where} has no "expiry"`, 'cfssl rejects such a profile, too')
  const backdateMs = durationOf('backdate') ?? kubernetesBackdateMs
  if (backdateMs < 0)
    throw invalid(`${where} has a negative backdate`, 'its certificates would not be valid yet')
  const subjectAttributes = texts('subjectattributes')
  const unknown = subjectAttributes.find((type) => !goAttributeTypes.includes(type))
  if (unknown !== undefined)
    throw invalid(
      `${where} allows the subject attribute "${unknown}"`,
      `kcert supports ${goAttributeTypes.join(', ')}`,
    )
  return {
    usages,
    ttlMs: ttlMs ?? kubernetesTtlMs,
    backdateMs,
    subjectAttributes,
    ocspUrls: texts('ocsp_url'),
    issuerUrls: texts('issuer_urls'),
    crlUrls: texts('crl_url'),
  }
}

function refuseWhatIsNotFollowed(node: Node, where: string, isCfssl: boolean): void {
  if (isTrue(valueAt(node, 'ca_constraint', 'is_ca')))
    throw invalid(
      `${where} is for CA certificates (ca_constraint.is_ca)`,
      'like kube-controller-manager, kcert ca sign issues no CA certificates',
    )
  for (const [name, value] of entriesOf(node)) {
    const reason = notFollowed[name.toLowerCase()]
    if (reason !== undefined && isCfssl && isGiven(value))
      throw invalid(`${where} has "${name}", which kcert does not support`, reason)
    if (!isCfssl && !ownMembers.includes(name))
      throw invalid(`${where} has an unknown field "${name}"`, `a profile has ${ownMembers.join(', ')}`)
  }
}

function usagesOf(node: Node, where: string): Usage[] {
  const asked = itemsOf(member(node, 'usages')).map((item) => textOf(item) ?? '')
  if (asked.length === 0)
    throw invalid(`${where} has no usages`, `it needs a list of: ${knownUsages.join(', ')}`)
  const unknown = asked.find((usage) => !isUsage(usage))
  if (unknown !== undefined)
    throw invalid(`${where} has the unknown usage "${unknown}"`, `Kubernetes has: ${knownUsages.join(', ')}`)
  return asked.filter(isUsage)
}

/** Returns a field, without regard to case, as Go does. */
function member(node: Node | undefined, name: string): Node | undefined {
  return entriesOf(node).findLast(([key]) => key.toLowerCase() === name)?.[1]
}

/** False for null, false, zero, empty text and empty lists: Go's zero values, which mean that a field is not set. */
function isGiven(node: Node): boolean {
  if (node.kind === 'list') return node.items.length > 0
  if (node.kind === 'map') return entriesOf(node).some(([, value]) => isGiven(value))
  if (node.type === 'boolean') return isTrue(node)
  return node.type !== 'null' && node.text !== '' && node.text !== '0'
}

function noSuchProfile(file: string, name: string | undefined, profiles: Node | undefined): KcertError {
  const names = entriesOf(profiles).map(([key]) => key)
  const what = name === undefined ? 'default profile' : `profile "${name}"`
  return invalid(`${file} has no ${what}`, names.length === 0 ? 'it has none' : `it has: ${names.join(', ')}`)
}

function invalid(what: string, why: string): KcertError {
  return new KcertError('KCERT_PROFILE_INVALID', what, { why, next: 'kcert ca sign --help' })
}
