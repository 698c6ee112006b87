import { minorOf } from './tested-versions.ts'

// Differences between Kubernetes releases that affect a phase. The table in docs/decisions/0012-capabilities.md contains the same
// rows, with the reasons. Several releases run during an upgrade, so kcert checks each process separately.

/** A feature gate: setting a deprecated one restores the earlier behavior, turning off any other. */
interface Gate {
  readonly name: string
  readonly stage: 'beta' | 'GA' | 'deprecated'
}

/** A behavior that affects a phase. */
interface Capability {
  readonly what: string
  /** The first minor version of Kubernetes 1 that has it by default. */
  readonly since: number | 'all' | 'none' | 'patches of 1.33 to 1.36'
  readonly gate?: Gate
  /** `verified`: a phase tests the behavior; `assumed absent`: every process is treated like an earlier version. */
  readonly decision: 'verified' | 'detected' | 'assumed absent'
}

const rereadsCa: Gate = { name: 'ClientsAllowCARotation', stage: 'beta' }
const trustBundle: Gate = { name: 'ClusterTrustBundle', stage: 'GA' }

export const capabilities = {
  kubeletRereadsClientCa: {
    what: 'A kubelet accepts clients by the new content of `clientCAFile`',
    since: 'all',
    decision: 'verified',
  },
  kubeletSendsNewCaList: {
    what: 'A kubelet names the new CA in the list that it sends to TLS clients',
    since: 36,
    gate: { name: 'ReloadKubeletClientCAFile', stage: 'beta' },
    decision: 'assumed absent',
  },
  kubeletRereadsServingFile: {
    what: 'A kubelet serves a new `tlsCertFile` to clients without SNI, such as API servers',
    since: 36,
    gate: { name: 'ReloadKubeletServerCertificateFile', stage: 'beta' },
    decision: 'assumed absent',
  },
  clientRereadsCaFile: {
    what: 'A program with client-go rereads its CA file, at most every 5 minutes',
    since: 36,
    gate: rereadsCa,
    decision: 'detected',
  },
  apiServerRereadsKubeletCa: {
    what: 'An API server rereads `--kubelet-certificate-authority`',
    since: 36,
    gate: rereadsCa,
    decision: 'assumed absent',
  },
  apiServerServesTrustBundles: {
    what: 'An API server serves ClusterTrustBundles',
    since: 37,
    gate: trustBundle,
    decision: 'detected',
  },
  managerPublishesTrustBundle: {
    what: 'kube-controller-manager updates the ClusterTrustBundle of API servers while it is the leader',
    since: 37,
    gate: trustBundle,
    decision: 'detected',
  },
  managerReleasesLease: {
    what: 'kube-controller-manager releases its Lease when it exits',
    since: 'none',
    decision: 'assumed absent',
  },
  kubeletClientWithoutGroup: {
    what: 'kubeadm issues `apiserver-kubelet-client` without O',
    since: 'patches of 1.33 to 1.36',
    decision: 'verified',
  },
  kubeletKeepsPodsReady: {
    what: 'A kubelet leaves its pods Ready when it restarts',
    since: 35,
    gate: { name: 'ChangeContainerStatusOnKubeletRestart', stage: 'deprecated' },
    decision: 'detected',
  },
} as const satisfies Record<string, Capability>

/** A capability that the version and the feature gates of a process determine. */
interface ByVersion {
  readonly since: number
  readonly gate: Gate
}

/** Reasons that are assumptions: kcert cannot detect the behavior. */
export const unknown = {
  version: 'unknown version',
  gates: 'unknown feature gates',
  program: 'its program cannot be read on its node',
  clientGo: 'its client-go version is unknown',
  otherClient: 'its program does not use client-go',
} as const

/**
 * Returns why a process behaves, or is assumed to behave, like earlier versions; undefined if it has the capability. `gates`: its
 * feature gate settings, as in --feature-gates; undefined if unknown.
 */
export function whyEarlier(
  { since, gate }: ByVersion,
  version: string | undefined,
  gates: string | undefined,
): string | undefined {
  const minor = Number(minorOf(version)?.slice('1.'.length))
  if (Number.isNaN(minor)) return unknown.version
  if (minor < since) return version
  return gates === undefined ? unknown.gates : gateSetting(gate, gates)
}

/** Returns true for a reason that kcert did not detect. */
export function isAssumption(why: string | undefined): boolean {
  return Object.values(unknown).some((one) => one === why)
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
  const { gate, since } = capabilities.clientRereadsCaFile
  const setting = gateSetting(gate, settings.join('\n'))
  if (setting !== undefined) return setting
  const versions = clientGoVersions(build)
  if (versions.length === 0) return unknown.otherClient
  const old = versions.find((version) => (clientGoMinor(version) ?? minor ?? 0) < since)
  if (old === undefined) return undefined
  return /^v[\w.+-]{1,60}$/.test(old) ? `its client-go is ${old}` : unknown.clientGo
}

/**
 * Returns which setting restores the earlier behavior; undefined if none does. The text may be a list or a map, with or without
 * quotes. A value that Go cannot parse counts as this setting.
 */
function gateSetting({ name, stage }: Gate, text: string): string | undefined {
  const wanted = stage === 'deprecated' ? /^(?:0|f|F|false|False|FALSE)$/ : /^(?:1|t|T|true|True|TRUE)$/
  const values = (of: string): string[] =>
    [...text.matchAll(new RegExp(`(?<![A-Za-z])${of}["']?\\s*[=:]\\s*["']?(\\w*)`, 'g'))].map(
      ([, value = '']) => value,
    )
  const own = values(name)
  const its = own.length === 0 && stage === 'beta' ? values('AllBeta') : own
  if (its.every((value) => wanted.test(value))) return undefined
  return `${name} is turned ${stage === 'deprecated' ? 'on' : 'off'}`
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
