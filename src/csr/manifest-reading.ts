import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import { entriesOf, itemsOf, type Node, textOf, valueAt } from '../kubeconfig/node.ts'
import type { RequestCondition, SigningRequest } from './signing-request.ts'

const kind = 'CertificateSigningRequest'

/**
 * Returns all CertificateSigningRequests of a YAML or JSON text, also those in lists, in their order. Others are passed over.
 * Nothing in them is judged here: a missing or misspelled field reads as empty. Throws KCERT_MANIFEST_MALFORMED when the
 * text is no YAML.
 */
export async function readSigningRequests(text: string): Promise<SigningRequest[]> {
  const { documents, defects } = await readDocuments(text)
  const [defect] = defects
  if (defect !== undefined) {
    const where = defect.line === undefined ? '' : ` at line ${defect.line}`
    throw new KcertError('KCERT_MANIFEST_MALFORMED', `the manifest cannot be read${where}`, {
      why: defect.reason,
      next: defect.next ?? 'correct it; kubectl create --dry-run=client -f FILE shows the same place',
    })
  }
  return documents.flatMap(objectsOf).map(signingRequestOf)
}

function objectsOf(document: Node): Node[] {
  const name = textOf(valueAt(document, 'kind'))
  if (name === kind) return [document]
  if (name === `${kind}List`) return [...itemsOf(valueAt(document, 'items'))]
  return name === 'List'
    ? itemsOf(valueAt(document, 'items')).filter((item) => textOf(valueAt(item, 'kind')) === kind)
    : []
}

/** Returns the object that a document holds. */
export function signingRequestOf(object: Node): SigningRequest {
  const at = (...path: string[]): Node | undefined => valueAt(object, ...path)
  const expirationSeconds = textOf(at('spec', 'expirationSeconds'))
  const certificate = fromBase64(textOf(at('status', 'certificate')))
  return {
    ...text('apiVersion', at('apiVersion')),
    ...text('name', at('metadata', 'name')),
    ...text('generateName', at('metadata', 'generateName')),
    ...text('uid', at('metadata', 'uid')),
    ...text('resourceVersion', at('metadata', 'resourceVersion')),
    ...text('creationTimestamp', at('metadata', 'creationTimestamp')),
    ...text('deletionTimestamp', at('metadata', 'deletionTimestamp')),
    labels: textsByKey(at('metadata', 'labels')),
    ...(at('metadata', 'annotations') === undefined
      ? {}
      : { annotations: textsByKey(at('metadata', 'annotations')) }),
    request: fromBase64(textOf(at('spec', 'request')) ?? ''),
    signerName: textOf(at('spec', 'signerName')) ?? '',
    usages: textsOf(at('spec', 'usages')),
    ...(expirationSeconds === undefined ? {} : { expirationSeconds: Number(expirationSeconds) }),
    ...text('username', at('spec', 'username')),
    ...text('userUid', at('spec', 'uid')),
    groups: textsOf(at('spec', 'groups')),
    extra: Object.fromEntries(entriesOf(at('spec', 'extra')).map(([key, values]) => [key, textsOf(values)])),
    conditions: itemsOf(at('status', 'conditions')).map(conditionOf),
    ...(certificate === undefined || certificate.length === 0 ? {} : { certificate }),
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

/** k8s.io/api certificates/v1 and k8s.io/apimachinery meta/v1 name these. */
function unknownFields(object: Node): Pick<SigningRequest, 'unknownFields'> {
  const unknown = fieldsOf.flatMap(([path, fields]) =>
    entriesOf(path.length === 0 ? object : valueAt(object, ...path))
      .filter(([key]) => !fields.has(key))
      .map(([key]) => [...path, key].join('.')),
  )
  return unknown.length === 0 ? {} : { unknownFields: unknown }
}

function conditionOf(node: Node): RequestCondition {
  return {
    type: textOf(valueAt(node, 'type')) ?? '',
    // Conditions that were made before Kubernetes 1.18 have no status, and Kubernetes takes them as true.
    status: textOf(valueAt(node, 'status')) || 'True',
    ...text('reason', valueAt(node, 'reason')),
    ...text('message', valueAt(node, 'message')),
    ...text('lastUpdateTime', valueAt(node, 'lastUpdateTime')),
  }
}

function text<Key extends string>(key: Key, node: Node | undefined): { [K in Key]?: string } {
  const value = textOf(node)
  return (value === undefined ? {} : { [key]: value }) as { [K in Key]?: string }
}

function textsOf(node: Node | undefined): string[] {
  return itemsOf(node).map((item) => textOf(item) ?? '')
}

function textsByKey(node: Node | undefined): Record<string, string> {
  return Object.fromEntries(entriesOf(node).map(([key, value]) => [key, textOf(value) ?? '']))
}

/** As Go's JSON reader: the standard alphabet with padding, line ends passed over. */
function fromBase64(encoded: string | undefined): Uint8Array | undefined {
  if (encoded === undefined) return undefined
  const plain = encoded.replaceAll(/[\r\n]/g, '')
  return plain.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(plain)
    ? Buffer.from(plain, 'base64')
    : undefined
}
