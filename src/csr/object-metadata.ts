import { isSubdomain } from '../x509/plain-names.ts'
import { quoted } from './quoting.ts'

// The metadata of a new object, as the API server validates it for every kind (k8s.io/apimachinery pkg/api/validation/objectmeta.go,
// pkg/util/validation; k8s.io/kubernetes pkg/apis/core/validation for finalizers).

/** A manifest whose fields have the types of the API. */
export interface ManifestMetadata {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string | null>> | null
    readonly annotations?: Readonly<Record<string, string | null>> | null
    readonly finalizers?: readonly string[] | null
    readonly ownerReferences?: readonly OwnerReference[] | null
  } | null
}

interface OwnerReference {
  readonly apiVersion?: string | null
  readonly kind?: string | null
  readonly name?: string | null
  readonly uid?: string | null
  readonly controller?: boolean | null
}

const longestName = 63
const mostAnnotationBytes = 256 * 1024
const nameCharacters = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/
const ownFinalizers: ReadonlySet<string> = new Set(['kubernetes', 'orphan', 'foregroundDeletion'])

/** Returns the reasons why the API server would reject the metadata, as fragments. */
export function metadataFaults({ metadata }: ManifestMetadata): string[] {
  const { labels, annotations, finalizers, ownerReferences } = metadata ?? {}
  return [
    ...Object.entries(labels ?? {}).flatMap(([key, value]) => [
      ...(isQualifiedName(key) ? [] : [`metadata.labels: ${quoted(key)} is not a valid label key`]),
      ...(!value || isShortName(value)
        ? []
        : [`metadata.labels: ${quoted(value ?? '')} is not a valid label value`]),
    ]),
    ...annotationFaults(Object.entries(annotations ?? {})),
    ...finalizerFaults(finalizers ?? []),
    ...ownerFaults(ownerReferences ?? []),
  ]
}

/** True for a name of at most 63 characters, optionally with a DNS subdomain and a slash before it. */
function isQualifiedName(text: string): boolean {
  const [name = '', domain, ...more] = text.split('/').reverse()
  return more.length === 0 && (domain === undefined || isSubdomain(domain)) && isShortName(name)
}

function isShortName(name: string): boolean {
  return name.length <= longestName && nameCharacters.test(name)
}

function annotationFaults(annotations: readonly (readonly [key: string, value: string | null])[]): string[] {
  const bytes = annotations.reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value ?? ''),
    0,
  )
  return [
    ...annotations
      .filter(([key]) => !isQualifiedName(key.toLowerCase()))
      .map(([key]) => `metadata.annotations: ${quoted(key)} is not a valid annotation key`),
    ...(bytes <= mostAnnotationBytes
      ? []
      : [`metadata.annotations have ${bytes} bytes, more than ${mostAnnotationBytes}`]),
  ]
}

function finalizerFaults(finalizers: readonly string[]): string[] {
  const isBoth = finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')
  return [
    ...finalizers
      .filter((name) => !isQualifiedName(name) || (!name.includes('/') && !ownFinalizers.has(name)))
      .map((name) => `metadata.finalizers: ${quoted(name)} is not DOMAIN/NAME`),
    ...(isBoth ? ['metadata.finalizers: orphan and foregroundDeletion are mutually exclusive'] : []),
  ]
}

function ownerFaults(owners: readonly OwnerReference[]): string[] {
  const controllers = owners.filter(({ controller }) => controller === true)
  return [
    ...owners.flatMap((owner, index) => {
      const at = `metadata.ownerReferences[${index}]`
      const empty = (['kind', 'name', 'uid'] as const).filter((field) => !owner[field])
      const isEvent = owner.apiVersion === 'v1' && owner.kind === 'Event'
      return [
        ...(isGroupVersion(owner.apiVersion ?? '') ? [] : [`${at}.apiVersion is not GROUP/VERSION`]),
        ...empty.map((field) => `${at}.${field} is empty`),
        ...(isEvent ? [`${at}: an Event cannot be an owner`] : []),
      ]
    }),
    ...(controllers.length > 1 ? ['metadata.ownerReferences: more than one has controller: true'] : []),
  ]
}

function isGroupVersion(text: string): boolean {
  const parts = text.split('/')
  return parts.length <= 2 && parts.at(-1) !== ''
}
