import type { Node } from '../kubeconfig/node.ts'

type Fields = Readonly<Record<string, unknown>>

/** The parts of each kind that can contain certificates, CAs or requests. The rest (schemas, managedFields) is ignored. */
const parts: Readonly<Record<string, readonly (readonly string[])[]>> = {
  Secret: [['type'], ['data']],
  ConfigMap: [['data'], ['binaryData']],
  CertificateSigningRequest: [['spec'], ['status']],
  PodCertificateRequest: [['spec', 'signerName'], ['status']],
  ValidatingWebhookConfiguration: [['webhooks']],
  MutatingWebhookConfiguration: [['webhooks']],
  APIService: [['spec']],
  CustomResourceDefinition: [['spec', 'conversion']],
  ClusterTrustBundle: [['spec']],
}

/** Returns an object of an API server as if its manifest had been read, limited to the parts with certificates. */
export function objectNode(object: Fields, kind: string): Node {
  const { name, namespace } = (object.metadata ?? {}) as Fields
  const found: Record<string, unknown> = { kind, metadata: { name, namespace } }
  for (const [first = '', second] of parts[kind] ?? []) {
    const value = object[first]
    found[first] = second === undefined ? value : { [second]: (value as Fields | undefined)?.[second] }
  }
  return nodeOf(found)
}

const nowhere = [0, 0] as const

function nodeOf(value: unknown): Node {
  if (Array.isArray(value)) return { kind: 'list', items: value.map(nodeOf), range: nowhere }
  if (typeof value === 'object' && value !== null) {
    const entries = new Map<string, { key: typeof nowhere; value: Node }>()
    for (const [key, of] of Object.entries(value))
      if (of !== undefined) entries.set(key, { key: nowhere, value: nodeOf(of) })
    return { kind: 'map', entries, range: nowhere }
  }
  const type = value === null ? 'null' : (typeof value as 'string' | 'number' | 'boolean')
  return { kind: 'scalar', type, text: value === null ? '' : String(value), range: nowhere }
}
