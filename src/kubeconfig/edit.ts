import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from './documents.ts'
import { editYaml, type YamlEdit } from './edit-yaml.ts'
import { isKubeconfig, readKubeconfig } from './kubeconfig.ts'
import { valueAt } from './node.ts'

/** The new value of a field: inline data, or the path of a file, absolute or relative to the kubeconfig's folder. */
export type NewMaterial = { readonly data: Uint8Array } | { readonly file: string }

/** The fields of a kubeconfig to change. Absent fields stay the same. */
export interface KubeconfigChanges {
  readonly clusters?: readonly { readonly name: string; readonly certificateAuthority: NewMaterial }[]
  readonly users?: readonly {
    readonly name: string
    readonly clientCertificate?: NewMaterial
    readonly clientKey?: NewMaterial
  }[]
}

/**
 * Returns the kubeconfig's text with these fields changed, and every other byte unchanged. Of a pair like certificate-authority
 * and certificate-authority-data, the field that is not set is removed, because clients reject both together. Throws
 * KCERT_KUBECONFIG_UNUSABLE when the cluster or user does not exist, KCERT_EDIT_REFUSED when it cannot be edited in place. The
 * text contains a user's key, so its file keeps mode 0600. `file` is its path, for advice.
 */
export async function editKubeconfig(
  text: string,
  changes: KubeconfigChanges,
  file?: string,
): Promise<string> {
  const [root] = (await readDocuments(text)).documents
  if (root === undefined || !isKubeconfig(root)) {
    throw new KcertError('KCERT_KUBECONFIG_UNUSABLE', 'the file to edit is not a kubeconfig', {
      why: 'it has no clusters, users or contexts',
    })
  }
  const { clusters, users } = readKubeconfig(root)
  const edits: YamlEdit[] = []
  const set = (part: string, index: number, field: string, material: NewMaterial | undefined): void => {
    if (material === undefined) return
    const path = [`${part}s`, index, part]
    const [wanted, other] = 'data' in material ? [`${field}-data`, field] : [field, `${field}-data`]
    const value = 'data' in material ? Buffer.from(material.data).toString('base64') : material.file
    // Set first, then remove, so that the map of these fields is never empty.
    edits.push({ do: 'set', path: [...path, wanted], value })
    const item = valueAt(root, `${part}s`)
    const fields = item?.kind === 'list' ? valueAt(item.items[index], part, other) : undefined
    if (fields !== undefined) edits.push({ do: 'remove', path: [...path, other] })
  }
  for (const { name, certificateAuthority } of changes.clusters ?? []) {
    set('cluster', indexOf(clusters, 'cluster', name), 'certificate-authority', certificateAuthority)
  }
  for (const { name, clientCertificate, clientKey } of changes.users ?? []) {
    const index = indexOf(users, 'user', name)
    set('user', index, 'client-certificate', clientCertificate)
    set('user', index, 'client-key', clientKey)
  }
  return editYaml(
    text,
    edits,
    file === undefined ? undefined : commandLine`kubectl config view --raw --kubeconfig ${file}`,
  )
}

function indexOf(items: readonly { readonly name: string }[], kind: string, name: string): number {
  const index = items.findIndex((item) => item.name === name)
  if (index !== -1) return index
  throw new KcertError('KCERT_KUBECONFIG_UNUSABLE', `the kubeconfig has no ${kind} ${JSON.stringify(name)}`, {
    why: items.length === 0 ? `it has no ${kind}s` : `it has: ${items.map((item) => item.name).join(', ')}`,
  })
}
