import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { readDocumentOfKind } from '../kubeconfig/documents.ts'
import { editYaml, type YamlEdit, type YamlPath } from '../kubeconfig/edit-yaml.ts'
import { entriesOf, itemsOf, type Node, textOf, valueAt } from '../kubeconfig/node.ts'
import { type FlagChanges, type Flags, flagsOf, programOf, wordEdits } from './component-flags.ts'

/** The parts of a static pod's manifest that kcert uses. */
export interface StaticPod {
  readonly name: string
  readonly annotations: Readonly<Record<string, string>>
  readonly containers: readonly PodContainer[]
}

export interface PodContainer {
  readonly name: string
  /** "kube-apiserver": the last part of the first argument. */
  readonly program: string
  readonly image: string
  /** command, then args. */
  readonly argv: readonly string[]
  readonly flags: Flags
}

/** Changes to the definition of a component. Absent members change nothing. */
export interface DefinitionChanges {
  readonly flags?: FlagChanges
  /** Annotations of the pod; null removes one. */
  readonly annotations?: Readonly<Record<string, string | null>>
}

/** Returns a static pod's manifest. Throws KCERT_MANIFEST_MALFORMED for other text. */
export async function readStaticPod(text: string): Promise<StaticPod> {
  const root = await podOf(text)
  return {
    name: textOf(valueAt(root, 'metadata', 'name')) ?? '',
    annotations: Object.fromEntries(
      entriesOf(valueAt(root, 'metadata', 'annotations')).map(([key, value]) => [key, textOf(value) ?? '']),
    ),
    containers: itemsOf(valueAt(root, 'spec', 'containers')).map(readContainer),
  }
}

/**
 * Returns the manifest with a component's flags and the pod's annotations changed in place. Every other byte stays the same.
 * Values that are already set change nothing. Throws KCERT_EDIT_REFUSED when no container runs that program itself (a shell that
 * starts it has no flags to edit), KCERT_MANIFEST_MALFORMED when it is not a pod.
 */
export async function editStaticPod(
  text: string,
  program: string,
  { flags = {}, annotations = {} }: DefinitionChanges,
  file?: string,
): Promise<string> {
  const root = await podOf(text)
  const containers = itemsOf(valueAt(root, 'spec', 'containers'))
  const index = containers.findIndex((container) => readContainer(container).program === program)
  const container = containers[index]
  if (container === undefined) throw runsNot(program, containers.map(readContainer))
  const path: YamlPath = ['spec', 'containers', index]
  return editYaml(
    text,
    [...flagEdits(container, path, flags), ...annotationEdits(root, annotations)],
    file === undefined ? undefined : commandLine`kubectl create --dry-run=client -o yaml -f ${file}`,
  )
}

function readContainer(node: Node): PodContainer {
  const argv = [...wordsOf(node, 'command'), ...wordsOf(node, 'args')]
  return {
    name: textOf(valueAt(node, 'name')) ?? '',
    program: programOf(argv),
    image: textOf(valueAt(node, 'image')) ?? '',
    argv,
    flags: flagsOf(argv),
  }
}

function wordsOf(container: Node, field: 'command' | 'args'): string[] {
  return itemsOf(valueAt(container, field)).map((word) => textOf(word) ?? '')
}

function flagEdits(container: Node, path: YamlPath, flags: FlagChanges): YamlEdit[] {
  const command = wordsOf(container, 'command')
  const args = wordsOf(container, 'args')
  const [, ...words] = [...command, ...args]
  // Counted after the program's name: argument 0 is item 1 of the two lists.
  const pathOf = (at: number): YamlPath =>
    at + 1 < command.length ? [...path, 'command', at + 1] : [...path, 'args', at + 1 - command.length]
  const list: YamlPath = [...path, args.length > 0 ? 'args' : 'command']
  return wordEdits(words, flags).map((edit): YamlEdit => {
    if (edit.do === 'add') return { do: 'append', path: list, value: edit.word }
    const place = pathOf(edit.at)
    return edit.do === 'remove' ? { do: 'remove', path: place } : { do: 'set', path: place, value: edit.word }
  })
}

function annotationEdits(root: Node, changes: Readonly<Record<string, string | null>>): YamlEdit[] {
  const path = ['metadata', 'annotations'] as const
  const now = valueAt(root, ...path)
  const left = new Set(entriesOf(now).map(([key]) => key))
  const edits: YamlEdit[] = []
  for (const [key, value] of Object.entries(changes)) {
    if (value !== null) {
      if (textOf(valueAt(now, key)) !== value) edits.push({ do: 'set', path: [...path, key], value })
      left.add(key)
    } else if (left.delete(key)) {
      edits.push({ do: 'remove', path: [...path, key] })
    }
  }
  // Removing the last one also removes the empty map, so that adding and removing one restores the original bytes.
  if (left.size === 0 && edits.length > 0) return [{ do: 'remove', path }]
  return edits
}

async function podOf(text: string): Promise<Node> {
  const root = await readDocumentOfKind(text, 'Pod')
  if (typeof root !== 'string') return root
  throw new KcertError('KCERT_MANIFEST_MALFORMED', 'not a static pod manifest', { why: root })
}

function runsNot(program: string, containers: readonly PodContainer[]): KcertError {
  const found = containers.map((container) => container.program || container.image).join(', ')
  return new KcertError('KCERT_EDIT_REFUSED', `no container of the static pod runs ${program} itself`, {
    why: `it runs: ${found === '' ? 'nothing' : found}. Flags behind a shell or an entrypoint cannot be edited: set the container's command to ["${program}", …]`,
  })
}
