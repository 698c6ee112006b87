import { commandLine, fixed } from '../errors/command-line.ts'
import { shortList } from '../errors/short-list.ts'
import type { Refusal } from './phase.ts'
import type { ComponentName, Observed } from './snapshot.ts'
import type { Target } from './target.ts'

/** The Kubernetes minor versions on which a rotation ran from phase 1 to phase 12 on real nodes (docs/benchmarks.md). */
export const testedMinors: readonly string[] = ['1.33', '1.34', '1.35', '1.36', '1.37']

/** The minor versions on which a rotation of etcd's CA ran to its end on real nodes (docs/benchmarks.md). */
export const etcdTestedMinors: readonly string[] = ['1.37']

/** The minor versions on which a rotation of the service account key ran to its end on real nodes (docs/benchmarks.md). */
export const keyTestedMinors: readonly string[] = ['1.37']

/** Components whose minor version determines which files they reload. A cloud-controller-manager has its own version. */
export const versioned: readonly ComponentName[] = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
]

/** The name with which an unreadable version is accepted. */
const unknown = 'unknown'

/** Returns a refusal for each minor version that is neither tested nor accepted by the operator. */
export function untestedVersions(
  { nodes, components }: Observed<'nodes' | 'components'>,
  { acceptedVersions }: Pick<Target, 'acceptedVersions'>,
  tested = testedMinors,
  plan: 'kcert rotate-ca plan' | 'kcert rotate-sa-key --phase 1 --dry-run' = 'kcert rotate-ca plan',
): readonly Refusal[] {
  const kubelets = nodes.map(({ name: at, kubeletVersion: version }) => ({ at, node: at, version }))
  const others = components
    .filter(({ name }) => versioned.includes(name))
    .map(({ id, node, version }) => ({ at: id, node, version }))
  const byMinor = Map.groupBy([...kubelets, ...others], ({ version }) => minorOf(version) ?? unknown)
  return [...byMinor].flatMap(([minor, found]) => {
    if (tested.includes(minor) || acceptedVersions.has(minor)) return []
    // A node represents its components: they are named separately only if its kubelet has another version.
    const named = new Set(found.map(({ at }) => at))
    const names = shortList(found.flatMap(({ at, node }) => (at !== node && named.has(node) ? [] : [at])))
    const accept = commandLine`${fixed(plan)} --accept-untested-version ${minor}`
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

/** Returns "1.36" for "v1.36.3-eks-1a2b3c"; undefined for text without a version. */
export function minorOf(version = ''): string | undefined {
  return /^v(1\.\d{1,3})\.\d/.exec(version)?.[1]
}
