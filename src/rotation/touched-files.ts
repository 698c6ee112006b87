import type { CopiedFile } from './action.ts'
import { caFileOf, keyBeside } from './material.ts'
import { byNode, fileAt, onNode, type Seen, servingPathOf } from './picture.ts'
import { caNames } from './target.ts'
import { trustFlags } from './trust-files.ts'

// Every file that a rotation may change, so that phase 1 can copy all of them before anything happens.

/** The flags of a controller-manager that are led elsewhere while the rotation lasts. */
export const movedFlags = ['root-ca-file', 'cluster-signing-cert-file', 'cluster-signing-key-file'] as const

const leafFlags = [
  'tls-cert-file',
  'kubelet-client-certificate',
  'proxy-client-cert-file',
  'cluster-signing-cert-file',
  'cluster-signing-key-file',
] as const

type Needs = 'components' | 'kubelets' | 'kubeconfigs' | 'files'

/** Returns the files of a node that later phases may change, each with what it is now. */
export function touchedFilesOn(seen: Seen<Needs>, node: string): readonly CopiedFile[] {
  const paths = new Set<string>()
  const flagsOf = new Map<string, Record<string, string | null>>()
  const versions = new Map<string, string | undefined>()
  for (const { name, definition, flags, version } of onNode(seen.components, node)) {
    paths.add(definition)
    versions.set(definition, version)
    if (name === 'kube-controller-manager' || name === 'cloud-controller-manager') {
      flagsOf.set(definition, Object.fromEntries(movedFlags.map((flag) => [flag, flags[flag] ?? null])))
    }
    for (const flag of [...trustFlags[name].map((one) => one.flag), ...leafFlags]) {
      const path = flags[flag]
      if (path !== undefined) paths.add(path)
    }
  }
  for (const api of onNode(seen.components, node).filter(({ name }) => name === 'kube-apiserver')) {
    for (const ca of caNames) {
      const path = caFileOf(api, ca)
      if (path !== undefined && fileAt(seen, node, keyBeside(path)) !== undefined) paths.add(keyBeside(path))
    }
  }
  for (const kubelet of onNode(seen.kubelets, node)) {
    for (const path of [
      kubelet.clientCaFile,
      kubelet.kubeconfig,
      kubelet.clientCurrent,
      servingPathOf(kubelet),
    ]) {
      if (path !== undefined) paths.add(path)
    }
  }
  const kubeconfigs = byNode(seen.kubeconfigs, ({ at }) => at?.node ?? '').get(node) ?? []
  for (const { at } of kubeconfigs) if (at !== undefined) paths.add(at.path)
  return [...paths].sort().map((path) => {
    const file = fileAt(seen, node, path)
    const [flags, version] = [flagsOf.get(path), versions.get(path)]
    return {
      path,
      ...(file && { digest: file.digest }),
      ...(flags && { flags }),
      ...(version && { version }),
    }
  })
}
