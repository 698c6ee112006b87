// What differs between the releases of Kubernetes that a rotation meets. During an upgrade they run side by side, so each process is
// asked for its own: by what it shows at run time, and by its version only where it shows nothing.

/** Something that a process can do from a release on. */
export interface Capability {
  readonly what: string
  /** Minor version of Kubernetes 1.x from which it is so by default; undefined: in none yet. */
  readonly firstMinor: number | undefined
  /** The feature gate that turns it off, or on. */
  readonly gate?: string
  /** What shows it at run time. */
  readonly seenBy: string
}

export const capabilities = {
  kubeletVerifiesByNewFile: {
    what: 'a kubelet verifies clients by the new content of clientCAFile without a restart',
    firstMinor: 0,
    seenBy: 'a client certificate of the new CA is not answered with 401',
  },
  kubeletAdvertisesNewCas: {
    what: 'a kubelet names the new CA to TLS clients without a restart',
    firstMinor: 36,
    gate: 'ReloadKubeletClientCAFile',
    seenBy: 'the list of CAs in its CertificateRequest',
  },
  kubeletReloadsServingFile: {
    what: 'a kubelet serves the new tlsCertFile to clients without SNI, API servers among them',
    firstMinor: 36,
    gate: 'ReloadKubeletServerCertificateFile',
    seenBy: 'the leaf that it serves when it is dialled by IP address',
  },
  clientRereadsCaFile: {
    what: 'client-go reads a CA file again, at most every 5 minutes',
    firstMinor: 36,
    gate: 'ClientsAllowCARotation',
    seenBy: 'the build info of the program, its environment and its --feature-gates',
  },
  apiServerRereadsKubeletCa: {
    what: 'an API server reads --kubelet-certificate-authority again, on a request to a kubelet',
    firstMinor: 36,
    gate: 'ClientsAllowCARotation',
    seenBy: 'rest_client_transport_ca_reload_total after a request for logs',
  },
  trustBundlesServed: {
    what: 'an API server serves ClusterTrustBundles, and kube-controller-manager publishes one for them',
    firstMinor: 37,
    gate: 'ClusterTrustBundle',
    seenBy: 'a list at each API server',
  },
  managerReleasesLease: {
    what: 'kube-controller-manager releases its Lease when it ends',
    firstMinor: undefined,
    gate: 'ControllerManagerReleaseLeaderElectionLockOnExit',
    seenBy: 'the holder of the Lease after its end',
  },
  kubeletClientWithoutGroup: {
    what: 'kubeadm issues apiserver-kubelet-client without an organization',
    firstMinor: 37,
    seenBy: 'the subject of the certificate',
  },
} as const satisfies Record<string, Capability>

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
  if (versions.length === 0) return 'its program has no client-go'
  const old = versions.find((version) => (minorOf(version) ?? minor ?? 0) < firstMinor)
  if (old === undefined) return undefined
  return /^v[\w.+-]{1,60}$/.test(old)
    ? `its client-go is ${old}`
    : 'the version of its client-go is not known'
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

/** Of a copy that somebody keeps under another name the name stands for the version: nothing is known of it. */
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
function minorOf(version: string): number | undefined {
  if (version === 'v0.0.0' || version === '(devel)') return undefined
  const [, minor, patch, preview] = /^v0\.(\d{1,4})\.(\d{1,4})(-.+)?$/.exec(version) ?? []
  // Before its first release a minor version may lack what that brings.
  return Number(minor ?? 0) - (patch === '0' && preview !== undefined ? 1 : 0)
}
