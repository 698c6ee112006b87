import { readDocuments } from '../kubeconfig/documents.ts'
import { editYaml, type YamlEdit } from '../kubeconfig/edit-yaml.ts'
import { entriesOf, itemsOf, textOf, valueAt } from '../kubeconfig/node.ts'
import { encryptionAlgorithmOf } from '../site/definitions.ts'

/** kubeadm.k8s.io/v1beta3 has a map of flags; v1beta4 and every later version have a list of names and values. */
export async function withExtraArgs(
  text: string,
  component: string,
  flags: Readonly<Record<string, string | null>>,
): Promise<string> {
  let now = text
  for (const [name, value] of Object.entries(flags)) now = await withExtraArg(now, component, name, value)
  return now
}

/** Returns kubeadm's ClusterConfiguration with this encryptionAlgorithm; undefined removes it. */
export async function withEncryptionAlgorithm(text: string, value: string | undefined): Promise<string> {
  const now = await encryptionAlgorithmOf(text)
  if (now === value) return text
  const path = ['encryptionAlgorithm']
  return editYaml(text, [value === undefined ? { do: 'remove', path } : { do: 'set', path, value }])
}

async function withExtraArg(
  text: string,
  component: string,
  name: string,
  value: string | null,
): Promise<string> {
  const [root] = (await readDocuments(text)).documents
  const path = [component, 'extraArgs'] as const
  const args = root && valueAt(root, ...path)
  const isList = args?.kind === 'list' || (args?.kind !== 'map' && !/\/v1beta[1-3]$/.test(apiVersionOf(root)))
  const edits: YamlEdit[] = []
  if (isList) {
    const items = itemsOf(args)
    // A name may occur several times, and the last one counts. All must be removed, or an earlier one would take effect.
    const places = [...items.keys()].filter((index) => textOf(valueAt(items[index], 'name')) === name)
    const at = places.at(-1) ?? -1
    if (value === null) {
      if (places.length === items.length && at >= 0) edits.push({ do: 'remove', path })
      else
        edits.push(
          ...places.toReversed().map((index): YamlEdit => ({ do: 'remove', path: [...path, index] })),
        )
    } else if (at >= 0) edits.push({ do: 'set', path: [...path, at, 'value'], value })
    else if (items.length > 0) edits.push({ do: 'append', path, value: { name, value } })
    else edits.push({ do: 'set', path, value: [{ name, value }] })
  } else if (value !== null) {
    edits.push({ do: 'set', path: [...path, name], value })
  } else {
    const names = entriesOf(args).map(([key]) => key)
    if (names.includes(name)) edits.push({ do: 'remove', path: names.length === 1 ? path : [...path, name] })
  }
  return editYaml(text, edits)
}

function apiVersionOf(root: Parameters<typeof valueAt>[0]): string {
  return textOf(valueAt(root, 'apiVersion')) ?? ''
}
