import { commandLine } from '../errors/command-line.ts'
import type { Refusal } from './phase.ts'
import type { Seen } from './picture.ts'
import type { Target } from './target.ts'

/** The minor versions of Kubernetes that a rotation was run on from phase 1 to phase 12, on real nodes (docs/benchmarks.md). */
export const testedMinors: readonly string[] = ['1.36', '1.37']

/** Returns the refusal of each minor version that no rotation was run on and that the operator did not accept. */
export function untestedVersions(
  { nodes }: Seen<'nodes'>,
  { acceptedVersions }: Pick<Target, 'acceptedVersions'>,
): readonly Refusal[] {
  const byMinor = Map.groupBy(nodes, ({ kubeletVersion }) => minorOf(kubeletVersion))
  return [...byMinor].flatMap(([minor, found]) => {
    if (minor !== undefined && (testedMinors.includes(minor) || acceptedVersions.has(minor))) return []
    const names = found.map(({ name }) => name).join(', ')
    if (minor === undefined) {
      return [
        {
          what: `the Kubernetes version of ${names} is unknown`,
          why: 'which files a process reloads depends on its version',
          next: 'kubectl get nodes -o wide',
        },
      ]
    }
    return [
      {
        what: `no rotation was tested on Kubernetes ${minor}: ${names}`,
        why: 'which files a process reloads differs between minor versions',
        next: commandLine`kcert rotate-ca plan --accept-untested-version ${minor}`,
      },
    ]
  })
}

/** "1.36" of "v1.36.3-eks-1a2b3c"; undefined for what names no version. */
function minorOf(kubeletVersion: string): string | undefined {
  return /^v(1\.\d{1,3})\.\d/.exec(kubeletVersion)?.[1]
}
