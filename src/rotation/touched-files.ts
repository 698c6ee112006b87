import type { FlagChanges } from '../pki/component-flags.ts'
import type { CopiedFile } from './action.ts'
import { leafFlags } from './leaves.ts'
import { caFileOf, keyPathFor } from './material.ts'
import { byNode, type ComponentSnapshot, fileAt, type Observed, onNode, servingPathOf } from './snapshot.ts'
import { caNames } from './target.ts'
import { trustFlags } from './trust-files.ts'

// Every file that a rotation may change, so that phase 1 can copy all of them before the first change.

/** The flags of a controller-manager that point to kcert's folder during the rotation. */
export const movedFlags = ['root-ca-file', 'cluster-signing-cert-file', 'cluster-signing-key-file'] as const

/** Components with such flags. */
export const movers: ReadonlySet<string> = new Set(['kube-controller-manager', 'cloud-controller-manager'])

const copiedFlags = [
  ...Object.values(leafFlags).map(({ flag }) => flag),
  'cluster-signing-cert-file',
  'cluster-signing-key-file',
]

type Needs = 'components' | 'kubelets' | 'kubeconfigs' | 'files'

/** Returns the files on a node that later phases may change, each with its current state. */
export function touchedFilesOn(observed: Observed<Needs>, node: string): readonly CopiedFile[] {
  const components = onNode(observed.components, node)
  const definitions = new Map(components.map((one) => [one.definition, one]))
  const ofComponents = components.flatMap(({ name, definition, flags }) => {
    const named = [...trustFlags[name].map(({ flag }) => flag), ...copiedFlags]
    return [definition, ...named.map((flag) => flags[flag])]
  })
  const keys = components
    .filter(({ name }) => name === 'kube-apiserver')
    .flatMap((api) => caNames.flatMap((ca) => caFileOf(api, ca) ?? []))
    .map(keyPathFor)
    .filter((path) => fileAt(observed, node, path) !== undefined)
  const ofKubelets = onNode(observed.kubelets, node).flatMap((kubelet) => {
    return [kubelet.clientCaFile, kubelet.kubeconfig, kubelet.clientCurrent, servingPathOf(kubelet)]
  })
  const kubeconfigs = byNode(observed.kubeconfigs, ({ at }) => at?.node ?? '').get(node) ?? []
  const paths = new Set([...ofComponents, ...keys, ...ofKubelets, ...kubeconfigs.map(({ at }) => at?.path)])
  return [...paths]
    .filter((path) => path !== undefined)
    .sort()
    .map((path) => {
      const file = fileAt(observed, node, path)
      const component = definitions.get(path)
      const version = component?.version
      return {
        path,
        ...(file && { digest: file.digest }),
        ...(component && movers.has(component.name) && { flags: movedOf(component) }),
        ...(version && { version }),
      }
    })
}

function movedOf({ flags }: ComponentSnapshot): FlagChanges {
  return Object.fromEntries(movedFlags.map((flag) => [flag, flags[flag] ?? null]))
}
