import { commandLine } from '../errors/command-line.ts'
import type { Refusal } from './phase.ts'
import type { ComponentName, Observed } from './snapshot.ts'
import type { Target } from './target.ts'

/** The minor versions of Kubernetes that a rotation was run on from phase 1 to phase 12, on real nodes (docs/benchmarks.md). */
export const testedMinors: readonly string[] = ['1.33', '1.34', '1.35', '1.36', '1.37']

/** Of these it depends on the minor version which files they reload. A cloud-controller-manager has a version of its own. */
export const versioned: readonly ComponentName[] = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
]

/** By this a version that cannot be read is accepted. */
const unknown = 'unknown'

/** Returns the refusal of each minor version that no rotation was run on and that the operator did not accept. */
export function untestedVersions(
  { nodes, components }: Observed<'nodes' | 'components'>,
  { acceptedVersions }: Pick<Target, 'acceptedVersions'>,
): readonly Refusal[] {
  const kubelets = nodes.map(({ name: at, kubeletVersion: version }) => ({ at, node: at, version }))
  const others = components
    .filter(({ name }) => versioned.includes(name))
    .map(({ id, node, version }) => ({ at: id, node, version }))
  const byMinor = Map.groupBy([...kubelets, ...others], ({ version }) => minorOf(version) ?? unknown)
  return [...byMinor].flatMap(([minor, found]) => {
    if (testedMinors.includes(minor) || acceptedVersions.has(minor)) return []
    // A node represents what runs on it: its components are named if its kubelet has another version.
    const named = new Set(found.map(({ at }) => at))
    const names = shortList(found.flatMap(({ at, node }) => (at !== node && named.has(node) ? [] : [at])))
    const accept = commandLine`kcert rotate-ca plan --accept-untested-version ${minor}`
    if (minor === unknown) {
      const what = `the Kubernetes version of ${names} is unknown`
      const why =
        'which files a process reloads depends on its version. If you cannot find it out, accept the risk'
      return [{ what, why, next: accept }]
    }
    const what = `Kubernetes ${minor} is untested: ${names}`
    return [{ what, why: 'which files a process reloads depends on the minor version', next: accept }]
  })
}

/** Returns five names at most, and how many more there are. */
export function shortList(names: readonly string[], between = ', '): string {
  return `${names.slice(0, 5).join(between)}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`
}

/** "1.36" of "v1.36.3-eks-1a2b3c"; undefined for what names no version. */
export function minorOf(version = ''): string | undefined {
  return /^v(1\.\d{1,3})\.\d/.exec(version)?.[1]
}
