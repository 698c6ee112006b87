import { minorOf } from './tested-versions.ts'

// Differences between Kubernetes releases that affect a phase. docs/decisions/0012-capabilities.md lists those that kcert
// ignores. Several releases run during an upgrade, so kcert checks each process separately.

/** A behavior that a process has from Kubernetes 1.`firstMinor` on, by the default of a feature gate. */
interface Capability {
  readonly firstMinor: number
  readonly gate: string
}

export const capabilities = {
  /** client-go reads a CA file again, at most every 5 minutes. kcert detects this from the program's build info and settings. */
  clientRereadsCaFile: { firstMinor: 36, gate: 'ClientsAllowCARotation' },
  /**
   * A restarted kubelet keeps running containers Ready. Earlier versions report them as not Ready until their probes succeed
   * again. The feature gate restores the earlier behavior; kcert does not read a kubelet's feature gates.
   */
  kubeletKeepsPodsReady: { firstMinor: 35, gate: 'ChangeContainerStatusOnKubeletRestart' },
  /**
   * kube-controller-manager publishes the CAs of API servers in a ClusterTrustBundle, and keeps it up to date while it is the
   * leader.
   */
  managerPublishesTrustBundle: { firstMinor: 37, gate: 'ClusterTrustBundle' },
} as const satisfies Record<string, Capability>

/** Returns whether a release has a capability by default; false for an unknown version. */
export function hasByDefault({ firstMinor }: Capability, version: string | undefined): boolean {
  return Number(minorOf(version)?.slice('1.'.length)) >= firstMinor
}

/** Facts about the program of a process. */
export interface ProgramFacts {
  /** Lines of Go's build info: client-go, each followed by its replacement. Empty for a program without client-go. */
  readonly build: readonly string[]
  /** Feature gate settings: in the environment, in the flags, and in the file of --config. */
  readonly settings: readonly string[]
}

/**
 * Returns why a process is assumed to read a CA file only at startup; undefined if its client-go reads it again. `minor`: the
 * minor version of Kubernetes' own programs, whose build info contains no version of client-go.
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

/** Returns whether the configuration turns the feature gate off. The value may be a list or a map, with or without quotes. */
function isTurnedOff(gate: string, text: string): boolean {
  const values = (name: string): boolean[] =>
    [...text.matchAll(new RegExp(`(?<![A-Za-z])${name}["']?\\s*[=:]\\s*["']?(\\w*)`, 'g'))].map(
      ([, value = '']) => /^(?:1|t|T|true|True|TRUE)$/.test(value),
    )
  const own = values(gate)
  return own.length > 0 ? own.includes(false) : values('AllBeta').includes(false)
}

/** Returns the versions of client-go. A copy under another name has that name as its version, so the real version is unknown. */
function clientGoVersions(build: readonly string[]): string[] {
  return build.flatMap((line, index) => {
    const [word, path, version = ''] = line.split('\t')
    if (word !== 'dep' || path !== 'k8s.io/client-go') return []
    const [next, instead = '', its = ''] = build[index + 1]?.split('\t') ?? []
    if (next !== '=>' || instead.startsWith('./')) return [version]
    return [instead === path ? its : instead]
  })
}

/** Returns undefined for a program from Kubernetes' own repository, and 0 for a version without a number. */
function clientGoMinor(version: string): number | undefined {
  if (version === 'v0.0.0' || version === '(devel)') return undefined
  const [, minor, patch, preview] = /^v0\.(\d{1,4})\.(\d{1,4})(-.+)?$/.exec(version) ?? []
  // A prerelease of a minor version may lack the features of that version.
  return Number(minor ?? 0) - (patch === '0' && preview !== undefined ? 1 : 0)
}
