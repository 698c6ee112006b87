import { minorOf } from './tested-versions.ts'

// What differs between the releases of Kubernetes, as far as a phase decides by it: docs/decisions/0012-capabilities.md says what kcert
// does not ask. During an upgrade several releases run, so kcert asks each process for its own.

/** Something that a process can do from a minor version of Kubernetes 1.x on, by a feature gate's default. */
interface Capability {
  readonly firstMinor: number
  readonly gate: string
}

export const capabilities = {
  /** client-go reads a CA file again, at most every 5 minutes. Seen in the program's build info and settings. */
  clientRereadsCaFile: { firstMinor: 36, gate: 'ClientsAllowCARotation' },
  /**
   * A kubelet that was restarted leaves running containers Ready. One before reports them not Ready until their probes succeed again. The
   * feature gate restores that; kcert does not read a kubelet's feature gates.
   */
  kubeletKeepsPodsReady: { firstMinor: 35, gate: 'ChangeContainerStatusOnKubeletRestart' },
  /** kube-controller-manager publishes the CAs of API servers in a ClusterTrustBundle, and keeps it up to date while it leads. */
  managerPublishesTrustBundle: { firstMinor: 37, gate: 'ClusterTrustBundle' },
} as const satisfies Record<string, Capability>

/** Returns whether a release has a capability by default; one whose version is not known has not. */
export function hasByDefault({ firstMinor }: Capability, version: string | undefined): boolean {
  return Number(minorOf(version)?.slice('1.'.length)) >= firstMinor
}

/** What a process shows of its program. */
export interface ProgramFacts {
  /** Lines of Go's build info: client-go, and behind each what replaces it. None in a program without client-go. */
  readonly build: readonly string[]
  /** What sets feature gates: in its environment, in its flags, and in the file that --config names. */
  readonly settings: readonly string[]
}

/**
 * Returns why a process is assumed to read a CA file at its start alone; undefined where its client-go reads it again. `minor`: that
 * of its release, for Kubernetes' own programs, whose build info names no version of client-go.
 */
export function whyReadsOnce(
  { build, settings }: ProgramFacts,
  minor: number | undefined,
): string | undefined {
  const { gate, firstMinor } = capabilities.clientRereadsCaFile
  if (isTurnedOff(gate, settings.join('\n'))) return `${gate} is turned off`
  const versions = clientGoVersions(build)
  if (versions.length === 0) return 'its program does not use client-go'
  const old = versions.find((version) => (clientGoMinor(version) ?? minor ?? 0) < firstMinor)
  if (old === undefined) return undefined
  return /^v[\w.+-]{1,60}$/.test(old) ? `its client-go is ${old}` : 'its client-go version is unknown'
}

/** What is read in the configuration of a program may be a list or a map, and either way quoted. */
function isTurnedOff(gate: string, text: string): boolean {
  const values = (name: string): boolean[] =>
    [...text.matchAll(new RegExp(`(?<![A-Za-z])${name}["']?\\s*[=:]\\s*["']?(\\w*)`, 'g'))].map(
      ([, value = '']) => /^(?:1|t|T|true|True|TRUE)$/.test(value),
    )
  const own = values(gate)
  return own.length > 0 ? own.includes(false) : values('AllBeta').includes(false)
}

/** A copy under another name has that name as its version: nothing is known about it. */
function clientGoVersions(build: readonly string[]): string[] {
  return build.flatMap((line, index) => {
    const [word, path, version = ''] = line.split('\t')
    if (word !== 'dep' || path !== 'k8s.io/client-go') return []
    const [next, instead = '', its = ''] = build[index + 1]?.split('\t') ?? []
    if (next !== '=>' || instead.startsWith('./')) return [version]
    return [instead === path ? its : instead]
  })
}

/** Undefined for what Kubernetes' own repository is built from; 0 for a version that says nothing. */
function clientGoMinor(version: string): number | undefined {
  if (version === 'v0.0.0' || version === '(devel)') return undefined
  const [, minor, patch, preview] = /^v0\.(\d{1,4})\.(\d{1,4})(-.+)?$/.exec(version) ?? []
  // Before its first release a minor version may lack what that brings.
  return Number(minor ?? 0) - (patch === '0' && preview !== undefined ? 1 : 0)
}
