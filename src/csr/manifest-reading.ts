import { given } from '../errors/given.ts'
import { adviceFields, KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import { entriesOf, itemsOf, type Node, plainValue, textOf, valueAt } from '../kubeconfig/node.ts'
import { type ManifestMetadata, metadataFaults } from './object-metadata.ts'
import { typeFaults } from './request-shape.ts'
import type { SigningRequest } from './signing-request.ts'

const kind = 'CertificateSigningRequest'

/**
 * Returns all CertificateSigningRequests of a YAML or JSON text, in order, also those in lists. Ignores other objects. It does
 * not validate: a missing or misspelled field reads as empty. Throws KCERT_MANIFEST_MALFORMED when the text is not YAML.
 */
export async function readSigningRequests(text: string): Promise<SigningRequest[]> {
  const { documents, defects } = await readDocuments(text)
  const [defect] = defects
  if (defect !== undefined) {
    const where = defect.line === undefined ? '' : ` at line ${defect.line}`
    throw new KcertError('KCERT_MANIFEST_MALFORMED', `the manifest cannot be read${where}`, {
      why: defect.reason,
      ...adviceFields(defect),
    })
  }
  return documents.flatMap((document) => {
    // Items of a typed list have no apiVersion; the list has it.
    const isTyped = textOf(valueAt(document, 'kind')) === `${kind}List`
    const apiVersion = isTyped ? textOf(valueAt(document, 'apiVersion')) : undefined
    return objectsOf(document).map((object) => signingRequestOf(object, apiVersion))
  })
}

function objectsOf(document: Node): Node[] {
  const name = textOf(valueAt(document, 'kind'))
  if (name === kind) return [document]
  if (name === `${kind}List`) return [...itemsOf(valueAt(document, 'items'))]
  return name === 'List'
    ? itemsOf(valueAt(document, 'items')).filter((item) => textOf(valueAt(item, 'kind')) === kind)
    : []
}

/** Returns the signing request of a document; `apiVersion` is that of the enclosing list. */
export function signingRequestOf(object: Node, apiVersion = ''): SigningRequest {
  const at = (...path: string[]): Node | undefined => valueAt(object, ...path)
  const text = (...path: string[]): string | undefined => textOf(at(...path))
  const annotations = at('metadata', 'annotations')
  const expirationSeconds = text('spec', 'expirationSeconds')
  const certificate = fromBase64(text('status', 'certificate') ?? '')
  return {
    apiVersion: text('apiVersion') ?? apiVersion,
    ...given({
      name: text('metadata', 'name'),
      generateName: text('metadata', 'generateName'),
      uid: text('metadata', 'uid'),
      resourceVersion: text('metadata', 'resourceVersion'),
      creationTimestamp: text('metadata', 'creationTimestamp'),
      deletionTimestamp: text('metadata', 'deletionTimestamp'),
      annotations: annotations && textsByKey(annotations),
      expirationSeconds: expirationSeconds === undefined ? undefined : Number(expirationSeconds),
      username: text('spec', 'username'),
      userUid: text('spec', 'uid'),
    }),
    labels: textsByKey(at('metadata', 'labels')),
    request: fromBase64(text('spec', 'request') ?? ''),
    signerName: text('spec', 'signerName') ?? '',
    usages: textsOf(at('spec', 'usages')),
    groups: textsOf(at('spec', 'groups')),
    extra: Object.fromEntries(entriesOf(at('spec', 'extra')).map(([key, values]) => [key, textsOf(values)])),
    conditions: itemsOf(at('status', 'conditions')).map((node) => ({
      type: textOf(valueAt(node, 'type')) ?? '',
      // Conditions that were created before Kubernetes 1.18 have no status, and Kubernetes treats them as true.
      status: textOf(valueAt(node, 'status')) || 'True',
      ...given({
        reason: textOf(valueAt(node, 'reason')),
        message: textOf(valueAt(node, 'message')),
        lastUpdateTime: textOf(valueAt(node, 'lastUpdateTime')),
      }),
    })),
    ...(certificate?.length ? { certificate } : {}),
    ...faultsOf(object),
    ...unknownFields(object),
  }
}

const fieldsOf: readonly (readonly [path: readonly string[], fields: ReadonlySet<string>])[] = [
  [[], new Set(['apiVersion', 'kind', 'metadata', 'spec', 'status'])],
  [
    ['metadata'],
    new Set([
      ...['name', 'generateName', 'namespace', 'selfLink', 'uid', 'resourceVersion', 'generation'],
      ...['creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds', 'labels', 'annotations'],
      ...['ownerReferences', 'finalizers', 'managedFields'],
    ]),
  ],
  [
    ['spec'],
    new Set([
      ...['request', 'signerName', 'expirationSeconds', 'usages', 'username', 'uid', 'groups', 'extra'],
    ]),
  ],
  [['status'], new Set(['conditions', 'certificate'])],
]

/** The fields in k8s.io/api certificates/v1 and k8s.io/apimachinery meta/v1 are the known ones. */
function unknownFields(object: Node): Pick<SigningRequest, 'unknownFields'> {
  const unknown = fieldsOf.flatMap(([path, fields]) =>
    entriesOf(valueAt(object, ...path))
      .filter(([key]) => !fields.has(key))
      .map(([key]) => [...path, key].join('.')),
  )
  return unknown.length === 0 ? {} : { unknownFields: unknown }
}

function faultsOf(object: Node): Pick<SigningRequest, 'faults'> {
  const value = plainValue(object)
  const faults = typeFaults(value)
  // The metadata is checked only when every field has the right type.
  const found = faults.length > 0 ? faults : metadataFaults(value as ManifestMetadata)
  return found.length === 0 ? {} : { faults: found }
}

function textsOf(node: Node | undefined): string[] {
  return itemsOf(node).map((item) => textOf(item) ?? '')
}

function textsByKey(node: Node | undefined): Record<string, string> {
  return Object.fromEntries(entriesOf(node).map(([key, value]) => [key, textOf(value) ?? '']))
}

/** Decodes like Go's JSON decoder: the standard alphabet with padding; line ends are ignored. */
function fromBase64(encoded: string): Uint8Array | undefined {
  const plain = encoded.replaceAll(/[\r\n]/g, '')
  return plain.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(plain)
    ? Buffer.from(plain, 'base64')
    : undefined
}
