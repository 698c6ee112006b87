import { readDocuments } from '../kubeconfig/documents.ts'
import { type Node, textOf, valueAt } from '../kubeconfig/node.ts'
import type { Flags } from './component-flags.ts'

/** Fields that are named like their flags. */
const fields = [
  ...['name', 'data-dir', 'listen-client-urls', 'listen-metrics-urls', 'listen-peer-urls'],
  ...['advertise-client-urls', 'initial-advertise-peer-urls'],
]

/** The sections with the files of TLS, and what their flags begin with. */
const sections = { 'client-transport-security': '', 'peer-transport-security': 'peer-' } as const
const fieldsOfSection = ['cert-file', 'key-file', 'client-cert-file', 'trusted-ca-file', 'client-cert-auth']

/**
 * Returns the addresses and the files of TLS in a configuration file of etcd, as flags (server/embed/config.go); undefined if it is
 * not one YAML document with a map.
 */
export async function etcdConfigurationFlags(text: string): Promise<Flags | undefined> {
  const { documents, defects } = await readDocuments(text)
  const [root, ...others] = documents
  if (root?.kind !== 'map' || others.length + defects.length > 0) return undefined
  const found: (readonly [flag: string, value: Node | undefined])[] = [
    ...fields.map((field) => [field, valueAt(root, field)] as const),
    ...Object.entries(sections).flatMap(([section, prefix]) =>
      fieldsOfSection.map((field) => [`${prefix}${field}`, valueAt(root, section, field)] as const),
    ),
  ]
  return Object.fromEntries(
    found.flatMap(([flag, node]) => {
      const value = textOf(node)
      return value ? [[flag, value]] : []
    }),
  )
}
