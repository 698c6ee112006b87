import { commandLine } from '../errors/command-line.ts'
import type { CertificateRecord } from './certificate-record.ts'
import { keyTypeRefusals } from './key-type.ts'
import { caFileOf, kcertFolderFor, keyPathFor } from './material.ts'
import type { Phase, Refusal } from './phase.ts'
import { sharedKeyFiles } from './shared-keys.ts'
import { apiServerOn, apiServers, fileAt, type Observed, onNode, type Snapshot } from './snapshot.ts'
import { type CaChange, type CaName, changeOf, hasBegun, type Target } from './target.ts'
import type { TargetSections } from './target-reading.ts'
import { untestedVersions } from './tested-versions.ts'
import { movedFlags, movers } from './touched-files.ts'
import { upgradeInProgress } from './upgrades.ts'

// Clusters and states that kcert refuses to rotate. Refusals come before any change.

const servedLayouts = new Set(['kubeadm', 'plain'])

/** Returns why a phase is refused for this cluster in its current state; empty when the phase may start. */
export function preflight(
  observed: Observed<TargetSections> & Partial<Pick<Snapshot, 'extensionAuthentication' | 'kubeadm'>>,
  target: Target,
  { number, risk }: Pick<Phase, 'number' | 'risk'>,
): readonly Refusal[] {
  const unreachable = risk === 'reads' ? [] : unreachableNodes(observed)
  // Halfway through phase 12, continuing is safer than stopping. Only what makes the next step impossible is refused.
  if (target.isDropping) return unreachable
  return [
    ...unservedLayouts(observed),
    ...(risk === 'reads' ? [] : untestedVersions(observed, target)),
    ...withoutApiServer(observed),
    ...sharedCas(observed, target),
    ...expiredCas(observed, target),
    ...intermediates(target),
    ...unlikeNames(target),
    ...sameKeys(target),
    ...keyTypeRefusals(observed, target, number === 1 && !hasBegun(target)),
    ...sharedKeyFiles(observed, target),
    ...filesApart(observed, target),
    ...refusedKubeconfigs(observed, target),
    ...(number === 1 ? [...keysElsewhere(observed, target), ...upgradeInProgress(observed, target)] : []),
    ...otherSigners(observed),
    ...certificatesForServerNames(observed, target),
    ...anyFrontProxy(observed, target),
    ...unreachable,
  ]
}

/** Returns the command that plans the rotation of the other CA alone. */
function planOfOther(ca: CaName): string {
  return commandLine`kcert rotate-ca plan --ca ${ca === 'cluster' ? 'front-proxy' : 'cluster'}`
}

export function unservedLayouts({ nodes }: Observed<'nodes'>): readonly Refusal[] {
  const unserved = nodes.filter(({ layout }) => !servedLayouts.has(layout))
  const layouts = [...new Set(unserved.map(({ layout }) => layout))]
  const names = unserved.map(({ name }) => name).join(', ')
  return layouts.map((layout) => ({
    what: `kcert does not rotate ${layout} clusters: ${names}`,
    ...(layout === 'managed'
      ? {
          why: 'the provider creates and rotates the CAs of the cluster; use its CA rotation',
          next: 'kcert rotate-ca discover --dry-run',
        }
      : {
          why: `${layout} creates and rotates the CAs of the cluster`,
          next: commandLine`${layout} certificate rotate-ca --help`,
        }),
  }))
}

/** Refuses kubeconfigs that client-go rejects: kcert's view of the file would differ from the client's view. */
function refusedKubeconfigs(observed: Observed<'files'>, { waivers }: Target): readonly Refusal[] {
  return [...observed.files].flatMap(([key, { contains }]) => {
    const why = contains.kind === 'kubeconfig' ? contains.refusal : undefined
    if (why === undefined || waivers.has(key)) return []
    const what = `client-go rejects kubeconfig ${key}`
    const advice = commandLine`fix or delete the file, or accept the risk with --waive ${key}`
    return [{ what, why: `${why}; ${advice}`, next: commandLine`kcert rotate-ca plan` }]
  })
}

export function withoutApiServer({ components }: Observed<'components'>): readonly Refusal[] {
  return when(!components.some(({ name }) => name === 'kube-apiserver'), {
    what: 'no kube-apiserver was found on any node',
    why: 'the flags of kube-apiserver tell kcert which CA files are in use; check the access of control-plane nodes in kcert.yaml',
    next: 'kcert rotate-ca discover --dry-run',
  })
}

/** A client with a certificate of a shared CA could connect to etcd, or impersonate any user as the front proxy. */
function sharedCas(observed: Observed<'components' | 'files'>, target: Target): readonly Refusal[] {
  const cluster = changeOf(target, 'cluster')?.oldCa.spki
  if (cluster === undefined) return []
  const withEtcd = observed.components.find(({ node, flags }) => {
    const etcd = fileAt(observed, node, flags['etcd-cafile'])?.contains
    const digests = etcd?.kind === 'certificates' ? etcd.certificates : []
    return digests.some((digest) => observed.certificates.get(digest)?.spki === cluster)
  })
  return [
    ...when(cluster === changeOf(target, 'front-proxy')?.oldCa.spki, {
      what: 'the cluster and the front proxy share one CA',
      why: 'the two are rotated in a different order, and any client could impersonate any user; create a separate front-proxy CA first',
      next: 'kcert ca init --help',
    }),
    ...when(withEtcd !== undefined, {
      what: `the cluster and etcd share one CA (on ${withEtcd?.node})`,
      why: 'etcd does not reload its CA, and kcert does not restart it; create a separate etcd CA first',
      next: 'kcert ca init --help',
    }),
  ]
}

export function expiredCas(observed: Observed<never>, { changes }: Target): readonly Refusal[] {
  return changes
    .filter(({ oldCa }) => oldCa.notAfterMs <= observed.atMs)
    .map(({ ca, oldCa }) => ({
      what: `the ${ca} CA has expired: ${new Date(oldCa.notAfterMs).toISOString()}`,
      why: 'nothing accepts the certificates that it signed; recover the cluster from the files on its nodes first, then rotate',
      next: 'kcert rotate-ca recover --dry-run',
    }))
}

/**
 * Verifiers that trust the parent CA would still trust certificates that the rotated CA signed. OpenSSL does not end a path at a
 * CA that another CA signed.
 */
export function intermediates({ changes }: Target): readonly Refusal[] {
  const isBelow = ({ subject, issuer }: CertificateRecord): boolean => subject !== issuer
  return changes.flatMap(({ ca, oldCa, newCa }) => [
    ...when(isBelow(oldCa), {
      what: `the ${ca} CA is an intermediate: ${oldCa.subject}, signed by ${oldCa.issuer}`,
      why: 'clients that trust its issuer would still accept its certificates after phase 12; rotate it manually, as in the Kubernetes documentation',
      next: planOfOther(ca),
    }),
    ...when(isBelow(newCa), {
      what: `the new ${ca} CA is an intermediate: ${newCa.subject}, signed by ${newCa.issuer}`,
      why: 'OpenSSL clients do not accept an intermediate as trust anchor, and cluster-info and kubeconfigs do not contain its issuer. Without --ca-cert, phase 1 creates a self-signed CA',
      next: 'kcert rotate-ca --phase 1',
    }),
  ])
}

/** Given two CAs with the same name, OpenSSL takes the first that it finds unless both have key identifiers. */
export function unlikeNames({ changes }: Target): readonly Refusal[] {
  return changes
    .filter(
      ({ oldCa, newCa }) =>
        oldCa.subject === newCa.subject &&
        (oldCa.subjectKeyId === undefined || newCa.subjectKeyId === undefined),
    )
    .map(({ ca, newCa }) => ({
      what: `the new ${ca} CA has the name of the old one: ${newCa.subject}`,
      why: `without subject key identifiers in both, OpenSSL picks the wrong CA, whatever the order of the bundle; give the new CA another name, for example ${newCa.subject}-2`,
      next: 'kcert ca init --help',
    }))
}

/** Refuses a CA from the operator that has the key of the old CA: such a rotation would not change the key. */
export function sameKeys({ changes }: Target): readonly Refusal[] {
  return changes
    .filter(({ oldCa, newCa }) => oldCa.spki === newCa.spki)
    .map(({ ca }) => ({
      what: `the new ${ca} CA has the key of the old one`,
      why: 'certificates signed with the old key would stay trusted. Without --ca-cert, phase 1 creates a CA with a new key',
      next: 'kcert rotate-ca --phase 1',
    }))
}

/**
 * At the end, controller-managers get their own flags back, and these must refer to the new CA. kcert only updates the API
 * server's client CA file there. Any other file would keep the old CA, or other CAs that the bundle of phase 2 does not contain.
 */
function filesApart(observed: Observed<'components'>, target: Target): readonly Refusal[] {
  if (changeOf(target, 'cluster') === undefined) return []
  const found = observed.components.flatMap(({ id, node, name, flags }) => {
    const api = apiServerOn(observed, node)
    const certificate = api && caFileOf(api, 'cluster')
    if (certificate === undefined || !movers.has(name)) return []
    const own = { key: keyPathFor(certificate), folder: `${kcertFolderFor(certificate)}/` }
    return movedFlags.flatMap((flag) => {
      const path = flags[flag]
      const isCommon = path === (flag === 'cluster-signing-key-file' ? own.key : certificate)
      return path === undefined || isCommon || path.startsWith(own.folder) ? [] : [`${id} --${flag}=${path}`]
    })
  })
  return when(found.length > 0, {
    what: `flags that name other files than the API server's --client-ca-file: ${found.join(', ')}`,
    why: 'these files would still contain the old CA after the rotation; kcert is not tested with this. Set these flags to the --client-ca-file of the API server and to the key beside it',
    next: 'kcert rotate-ca plan',
  })
}

function keysElsewhere(observed: Observed<'components' | 'files'>, { changes }: Target): readonly Refusal[] {
  if (apiServers(observed).length === 0) return []
  return changes.flatMap((change) => {
    const { ca } = change
    return when(!isKeyOnNode(observed, change), {
      what: `no control-plane node has the key of the ${ca} CA`,
      why: 'kube-controller-manager signs with it until phase 7, and phase 1 signs the bridge certificate with it; rotate an external CA manually, as in the Kubernetes documentation',
      next: planOfOther(ca),
    })
  })
}

/** Returns true when a node has the key of the old CA beside the CA file of its API server. */
function isKeyOnNode(
  observed: Observed<'components' | 'files'>,
  { ca, oldCa }: Pick<CaChange, 'ca' | 'oldCa'>,
): boolean {
  return apiServers(observed).some((api) => {
    const path = caFileOf(api, ca)
    const contains = fileAt(observed, api.node, path && keyPathFor(path))?.contains
    return contains?.kind === 'key' && contains.spki === oldCa.spki
  })
}

/** Signers with their own files have their own CAs, which this playbook does not rotate. */
function otherSigners({ components }: Observed<'components'>): readonly Refusal[] {
  const perSigner = /^cluster-signing-(kubelet|kube-apiserver|legacy)-.*-file$/
  const found = components.flatMap(({ id, flags }) =>
    Object.keys(flags)
      .filter((flag) => perSigner.test(flag))
      .map((flag) => `${id} --${flag}`),
  )
  return when(found.length > 0, {
    what: `signers with separate files: ${found.join(', ')}`,
    why: 'kcert is not tested with separate signing files; remove these flags, so that all signers use --cluster-signing-cert-file',
    next: 'kcert rotate-ca plan',
  })
}

/** kcert reads the certificate of --tls-cert-file alone: those for single server names would keep the old CA, or would expire with it. */
function certificatesForServerNames(
  { components }: Observed<'components'>,
  target: Target,
): readonly Refusal[] {
  if (changeOf(target, 'cluster') === undefined) return []
  return components.flatMap(({ id, flags, process }) => {
    const value = process?.flags[serverNameFlag] ?? flags[serverNameFlag]
    const named = `${id} --${serverNameFlag}`
    if (value === undefined || target.waivers.has(named)) return []
    const advice = commandLine`remove the flag, or, if another CA signed its certificates, add --waive ${named}`
    return [
      {
        what: `kcert does not reissue the certificates of ${named}=${value}`,
        why: `if the old cluster CA signed one of them, clients reject the server under that name after phase 12; ${advice}`,
        next: 'kcert rotate-ca plan',
      },
    ]
  })
}

const serverNameFlag = 'tls-sni-cert-key'

function anyFrontProxy(
  { extensionAuthentication }: Partial<Pick<Snapshot, 'extensionAuthentication'>>,
  { changes }: Target,
): readonly Refusal[] {
  const isRotated = changes.some(({ ca }) => ca === 'front-proxy')
  return when(isRotated && extensionAuthentication?.allowsAnyName === true, {
    what: 'every certificate of the front-proxy CA is accepted as a front proxy, because --requestheader-allowed-names is empty',
    why: 'while two CAs are trusted, more clients could impersonate any user; set --requestheader-allowed-names=front-proxy-client on every API server',
    next: 'kcert rotate-ca plan',
  })
}

/**
 * Returns why no phase can be reported as complete: kcert cannot see these nodes, so no pending item covers their files and
 * processes.
 */
export function unseenNodes(observed: Observed<'nodes' | 'kubelets'>): readonly Refusal[] {
  const bare = observed.nodes.filter(
    ({ name, unreachable }) => unreachable === undefined && onNode(observed.kubelets, name).length === 0,
  )
  return [
    ...unreachableNodes(observed),
    ...bare.map(({ name }) => ({
      what: `no kubelet was found on node ${name}`,
      why: 'every node runs a kubelet; kcert cannot tell which CAs this one trusts and which certificates it uses',
      next: commandLine`kubectl get node ${name} -o wide`,
    })),
  ]
}

/** `why`: what a node that does not answer means for the rotation. */
export function unreachableNodes({ nodes }: Observed<'nodes'>, why = missedRotation): readonly Refusal[] {
  const gone = nodes.filter(({ unreachable }) => unreachable !== undefined)
  const named = gone.slice(0, 5).map(({ name, unreachable }) => `${name} (${unreachable})`)
  return when(gone.length > 0, {
    what: `${gone.length} node${gone.length === 1 ? '' : 's'} cannot be reached: ${named.join(', ')}`,
    why,
    next: 'kubectl get nodes',
  })
}

const missedRotation =
  'a node that misses the rotation cannot reach the cluster after phase 12; repair the node or delete its Node object'

export function when(is: boolean, refusal: Refusal): readonly Refusal[] {
  return is ? [refusal] : []
}
