import { decodeBase64 } from './base64.ts'
import { entriesOf, type Node, textOf, valueAt } from './node.ts'

// The fields of a kubeconfig with the types that client-go decodes them into (client-go 0.36.3, tools/clientcmd/api/v1/types.go).
// If one value has another type, client-go rejects the whole file. Fields that are not in the table may contain anything.

type Shape =
  | 'text'
  | 'boolean'
  | 'base64'
  | { readonly list: Shape }
  | { readonly map: Shape }
  | { readonly fields: Readonly<Record<string, Shape>> }
  /** A list that client-go turns into a map with unique names. The value of `inner` belongs to the item's name. */
  | { readonly named: Shape; readonly inner: string }

const texts: Shape = { list: 'text' }

const extensions: Shape = { list: { fields: { name: 'text' } } }

const cluster: Shape = {
  fields: {
    server: 'text',
    'tls-server-name': 'text',
    'insecure-skip-tls-verify': 'boolean',
    'certificate-authority': 'text',
    'certificate-authority-data': 'base64',
    'proxy-url': 'text',
    'disable-compression': 'boolean',
    extensions,
  },
}

const user: Shape = {
  fields: {
    'client-certificate': 'text',
    'client-certificate-data': 'base64',
    'client-key': 'text',
    'client-key-data': 'base64',
    token: 'text',
    tokenFile: 'text',
    as: 'text',
    'as-uid': 'text',
    'as-groups': texts,
    'as-user-extra': { map: texts },
    username: 'text',
    password: 'text',
    'auth-provider': { fields: { name: 'text', config: { map: 'text' } } },
    exec: {
      fields: {
        command: 'text',
        args: texts,
        env: { list: { fields: { name: 'text', value: 'text' } } },
        apiVersion: 'text',
        installHint: 'text',
        provideClusterInfo: 'boolean',
        interactiveMode: 'text',
      },
    },
    extensions,
  },
}

const context: Shape = { fields: { cluster: 'text', user: 'text', namespace: 'text', extensions } }

const config: Shape = {
  fields: {
    kind: 'text',
    apiVersion: 'text',
    preferences: { fields: { colors: 'boolean', extensions } },
    clusters: { named: cluster, inner: 'cluster' },
    users: { named: user, inner: 'user' },
    contexts: { named: context, inner: 'context' },
    'current-context': 'text',
    extensions,
  },
}

export interface FieldFault {
  /** "users[admin].exec.env[0].value" */
  readonly field: string
  readonly reason: string
}

/** Returns every field whose type makes client-go reject the whole file, and every duplicate name. */
export function fieldFaults(root: Node): FieldFault[] {
  return [...faultsOf(root, config, '')]
}

function* faultsOf(node: Node, shape: Shape, field: string): Generator<FieldFault> {
  // null leaves every field unchanged.
  if (isNull(node)) return
  if (typeof shape === 'string') {
    const reason = scalarFault(node, shape)
    if (reason !== undefined) yield { field, reason }
  } else if ('fields' in shape) {
    if (node.kind !== 'map') return yield { field, reason: 'not an object' }
    for (const [name, its] of Object.entries(shape.fields)) {
      const value = valueAt(node, name)
      if (value !== undefined) yield* faultsOf(value, its, field === '' ? name : `${field}.${name}`)
    }
  } else if ('map' in shape) {
    if (node.kind !== 'map') return yield { field, reason: 'not an object' }
    for (const [name, value] of entriesOf(node)) yield* faultsOf(value, shape.map, `${field}.${name}`)
  } else {
    if (node.kind !== 'list') return yield { field, reason: 'not a list' }
    yield* 'named' in shape ? namedFaults(node.items, shape, field) : listFaults(node.items, shape, field)
  }
}

function* namedFaults(
  items: readonly Node[],
  { named, inner }: Extract<Shape, { named: Shape }>,
  field: string,
): Generator<FieldFault> {
  const seen = new Set<string>()
  for (const [index, item] of items.entries()) {
    const name = textOf(valueAt(item, 'name')) ?? ''
    const path = `${field}[${name === '' ? index : name}]`
    const nameNode = valueAt(item, 'name')
    if (nameNode !== undefined) yield* faultsOf(nameNode, 'text', `${field}[${index}].name`)
    if (item.kind !== 'map' && !isNull(item)) yield { field: path, reason: 'not an object' }
    if (seen.has(name)) yield twice(path, name)
    seen.add(name)
    const value = valueAt(item, inner)
    if (value !== undefined) yield* faultsOf(value, named, value.kind === 'map' ? path : `${path}.${inner}`)
  }
}

function* listFaults(
  items: readonly Node[],
  shape: Extract<Shape, { list: Shape }>,
  field: string,
): Generator<FieldFault> {
  for (const [index, item] of items.entries()) yield* faultsOf(item, shape.list, `${field}[${index}]`)
  if (shape !== extensions) return
  const taken = new Set<string>()
  for (const [index, item] of items.entries()) {
    // An extension of null has no name. A missing name counts as a name too.
    const extension = valueAt(item, 'extension')
    const name = textOf(valueAt(item, 'name')) ?? ''
    if (taken.has(name)) yield twice(`${field}[${index}]`, name)
    if (extension !== undefined && !isNull(extension)) taken.add(name)
  }
}

function twice(field: string, name: string): FieldFault {
  return { field, reason: `the name ${JSON.stringify(name)} is used twice` }
}

function scalarFault(node: Node, shape: 'text' | 'boolean' | 'base64'): string | undefined {
  if (shape === 'boolean')
    return node.kind === 'scalar' && node.type === 'boolean' ? undefined : 'neither true nor false'
  // Go also accepts bytes as a list of numbers. Of these, an empty list occurs in practice.
  if (shape === 'base64' && node.kind === 'list' && node.items.length === 0) return undefined
  if (node.kind !== 'scalar') return 'not a string'
  if (node.type !== 'string') return `a ${node.type} without quotes, but a string is required`
  const decoded = shape === 'base64' ? decodeBase64(node.text) : undefined
  return decoded !== undefined && 'reason' in decoded ? decoded.reason : undefined
}

/** True for null, and for a missing value after a key. */
function isNull(node: Node): boolean {
  return node.kind === 'scalar' && node.type === 'null'
}
