import { commandLine } from '../errors/command-line.ts'
import type { CertificateRecord } from './certificate-record.ts'
import { caFileOf, folderBeside, keyBeside } from './material.ts'
import type { Phase, Refusal } from './phase.ts'
import { apiServerOn, apiServers, fileAt, type Observed, onNode, type Snapshot } from './snapshot.ts'
import { changeOf, type Target } from './target.ts'
import type { TargetSections } from './target-reading.ts'
import { untestedVersions } from './tested-versions.ts'
import { movedFlags, movers } from './touched-files.ts'
import { upgradeUnderWay } from './upgrades.ts'

// What kcert does not rotate, said before anything is done.

const servedLayouts = new Set(['kubeadm', 'plain'])

/** Returns why this cluster, or its state now, is refused for a phase; empty when it may be begun. */
export function preflight(
  observed: Observed<TargetSections> & Partial<Pick<Snapshot, 'extensionAuthentication' | 'kubeadm'>>,
  target: Target,
  { number, risk }: Pick<Phase, 'number' | 'risk'>,
): readonly Refusal[] {
  const unreachable = risk === 'reads' ? [] : unreachableNodes(observed)
  // Half way through, going on is safer than standing still: only what makes the next step impossible counts.
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
    ...filesApart(observed, target),
    ...refusedKubeconfigs(observed, target),
    ...(number === 1 ? [...keysElsewhere(observed, target), ...upgradeUnderWay(observed, target)] : []),
    ...otherSigners(observed),
    ...anyFrontProxy(observed, target),
    ...unreachable,
  ]
}

function unservedLayouts({ nodes }: Observed<'nodes'>): readonly Refusal[] {
  const unserved = nodes.filter(({ layout }) => !servedLayouts.has(layout))
  const layouts = [...new Set(unserved.map(({ layout }) => layout))]
  return layouts.map((layout) => ({
    what: `a cluster of ${layout} is not served: ${unserved.map(({ name }) => name).join(', ')}`,
    why: 'its CAs are made and rotated by what runs it',
    next:
      layout === 'managed'
        ? "use the provider's own rotation"
        : commandLine`use ${layout}'s own rotation command`,
  }))
}

/** What kcert reads in one, and writes into it, is nothing that its client sees. */
function refusedKubeconfigs(observed: Observed<'files'>, { waivers }: Target): readonly Refusal[] {
  return [...observed.files].flatMap(([key, { holds }]) => {
    const why = holds.kind === 'kubeconfig' ? holds.refusal : undefined
    if (why === undefined || waivers.has(key)) return []
    const next = commandLine`correct the file or remove it; where nothing uses it: --waive ${key}`
    return [{ what: `client-go refuses the kubeconfig ${key}`, why, next }]
  })
}

function withoutApiServer({ components }: Observed<'components'>): readonly Refusal[] {
  return when(!components.some(({ name }) => name === 'kube-apiserver'), {
    what: 'no kube-apiserver was found on any node',
    why: 'its flags say where the CAs are',
    next: 'check how control-plane nodes are reached in kcert.yaml: kcert rotate-ca discover',
  })
}

/** Who has a certificate of a shared CA could speak to etcd, or as the front proxy for anybody. */
function sharedCas(observed: Observed<'components' | 'files'>, target: Target): readonly Refusal[] {
  const cluster = changeOf(target, 'cluster')?.oldCa.spki
  if (cluster === undefined) return []
  const withEtcd = observed.components.find(({ node, flags }) => {
    const etcd = fileAt(observed, node, flags['etcd-cafile'])?.holds
    const digests = etcd?.kind === 'certificates' ? etcd.certificates : []
    return digests.some((digest) => observed.certificates.get(digest)?.spki === cluster)
  })
  return [
    ...when(cluster === changeOf(target, 'front-proxy')?.oldCa.spki, {
      what: 'one CA serves the cluster and the front proxy',
      why: 'the two are rotated in another order, and any client could name itself whom it likes',
      next: 'give the front proxy a CA of its own first',
    }),
    ...when(withEtcd !== undefined, {
      what: `one CA serves the cluster and etcd (on ${withEtcd?.node})`,
      why: 'etcd never reads its CA again, and this playbook does not restart it',
      next: 'give etcd a CA of its own first',
    }),
  ]
}

function expiredCas(observed: Observed<never>, { changes }: Target): readonly Refusal[] {
  return changes
    .filter(({ oldCa }) => oldCa.notAfterMs <= observed.atMs)
    .map(({ ca, oldCa }) => ({
      what: `the ${ca} CA has expired: ${new Date(oldCa.notAfterMs).toISOString()}`,
      why: 'nobody accepts anything that it signed, so there is nothing to carry over',
      next: 'recover first, which needs the files on the nodes alone, then rotate: kcert rotate-ca recover --dry-run',
    }))
}

/** What trusts the CA above goes on to trust what the rotated one signed; and OpenSSL ends no path at a CA that another one signed. */
function intermediates({ changes }: Target): readonly Refusal[] {
  const isBelow = ({ subject, issuer }: CertificateRecord): boolean => subject !== issuer
  return changes.flatMap(({ ca, oldCa, newCa }) => [
    ...when(isBelow(oldCa), {
      what: `the ${ca} CA is an intermediate: ${oldCa.subject}, signed by ${oldCa.issuer}`,
      why: 'whoever trusts the CA above it would go on to accept its certificates after phase 12',
      next: "a CA below another one is rotated by hand, by the twelve steps of Kubernetes' page",
    }),
    ...when(isBelow(newCa), {
      what: `the new ${ca} CA is an intermediate: ${newCa.subject}, signed by ${newCa.issuer}`,
      why: 'clients with OpenSSL accept no path that ends at it, and cluster-info and kubeconfigs hold nothing above it',
      next: 'leave out --ca-cert, and phase 1 creates a self-signed CA',
    }),
  ])
}

/** Of two CAs of one name OpenSSL takes the first that it finds, unless both say which key they have. */
function unlikeNames({ changes }: Target): readonly Refusal[] {
  return changes
    .filter(
      ({ oldCa, newCa }) =>
        oldCa.subject === newCa.subject &&
        (oldCa.subjectKeyId === undefined || newCa.subjectKeyId === undefined),
    )
    .map(({ ca, newCa }) => ({
      what: `the new ${ca} CA has the name of the old one: ${newCa.subject}`,
      why: 'without subject key identifiers in both, OpenSSL takes the wrong one of the two, in any order of the bundle',
      next: commandLine`give the new CA another name, e.g. ${`${newCa.subject}-2`}`,
    }))
}

/** One that the operator brings along: with the old key nothing would be rotated. */
function sameKeys({ changes }: Target): readonly Refusal[] {
  return changes
    .filter(({ oldCa, newCa }) => oldCa.spki === newCa.spki)
    .map(({ ca }) => ({
      what: `the new ${ca} CA has the key of the old one`,
      why: 'what the old key signed would be trusted for ever',
      next: 'leave out --ca-cert, and phase 1 creates a CA with a key of its own',
    }))
}

/**
 * At the end controller-managers get their own flags back, which then must lead to the new CA. Only what API servers know clients by
 * is written there: a file beside it would go on with the old CA, or with others that the bundle of phase 2 does not have.
 */
function filesApart(observed: Observed<'components'>, target: Target): readonly Refusal[] {
  if (changeOf(target, 'cluster') === undefined) return []
  const found = observed.components.flatMap(({ id, node, name, flags }) => {
    const api = apiServerOn(observed, node)
    const certificate = api && caFileOf(api, 'cluster')
    if (certificate === undefined || !movers.has(name)) return []
    const own = { key: keyBeside(certificate), folder: `${folderBeside(certificate)}/` }
    return movedFlags.flatMap((flag) => {
      const path = flags[flag]
      const isCommon = path === (flag === 'cluster-signing-key-file' ? own.key : certificate)
      return path === undefined || isCommon || path.startsWith(own.folder) ? [] : [`${id} --${flag}=${path}`]
    })
  })
  return when(found.length > 0, {
    what: `files of their own beside the API server's --client-ca-file: ${found.join(', ')}`,
    why: 'at the end they would still hold the old CA, and be published or signed with; this was not tried',
    next: "lead these flags to the API server's --client-ca-file, and to the key beside it, first",
  })
}

function keysElsewhere(observed: Observed<'components' | 'files'>, { changes }: Target): readonly Refusal[] {
  const apis = apiServers(observed)
  const [api] = apis
  if (api === undefined) return []
  return changes.flatMap(({ ca, oldCa }) => {
    const path = caFileOf(api, ca)
    const hasKey = apis.some(({ node }) => {
      const holds = fileAt(observed, node, path && keyBeside(path))?.holds
      return holds?.kind === 'key' && holds.spki === oldCa.spki
    })
    return when(!hasKey, {
      what: `the key of the ${ca} CA is on no control-plane node`,
      why: 'the controller-manager signs with it until phase 7, and the bridge is made with it',
      next: "an external CA is rotated by hand, by the twelve steps of Kubernetes' page",
    })
  })
}

/** Signers with files of their own have CAs of their own, which this playbook does not know. */
function otherSigners({ components }: Observed<'components'>): readonly Refusal[] {
  const perSigner = /^cluster-signing-(kubelet|kube-apiserver|legacy)-.*-file$/
  const found = components.flatMap(({ id, flags }) =>
    Object.keys(flags)
      .filter((flag) => perSigner.test(flag))
      .map((flag) => `${id} --${flag}`),
  )
  return when(found.length > 0, {
    what: `signers with files of their own: ${found.join(', ')}`,
    why: 'this was not tried',
    next: 'take these flags away, so that all signers use --cluster-signing-cert-file',
  })
}

function anyFrontProxy(
  { extensionAuthentication }: Partial<Pick<Snapshot, 'extensionAuthentication'>>,
  { changes }: Target,
): readonly Refusal[] {
  const isRotated = changes.some(({ ca }) => ca === 'front-proxy')
  return when(isRotated && extensionAuthentication?.allowsAnyName === true, {
    what: 'every certificate of the front-proxy CA counts as a front proxy: --requestheader-allowed-names is empty',
    why: 'while two CAs are trusted, twice as many could name themselves whom they like',
    next: 'set --requestheader-allowed-names=front-proxy-client first',
  })
}

/** Returns why no phase can be said to hold: nodes of which nothing is seen, whose files and processes no gap is about. */
export function unseenNodes(observed: Observed<'nodes' | 'kubelets'>): readonly Refusal[] {
  const bare = observed.nodes.filter(
    ({ name, unreachable }) => unreachable === undefined && onNode(observed.kubelets, name).length === 0,
  )
  return [
    ...unreachableNodes(observed),
    ...bare.map(({ name }) => ({
      what: `no kubelet was found on node ${name}`,
      why: 'every node has one, and what it trusts and presents is not known',
      next: commandLine`correct it and run the same command again: kubectl get node ${name} -o wide`,
    })),
  ]
}

function unreachableNodes({ nodes }: Observed<'nodes'>): readonly Refusal[] {
  const gone = nodes.filter(({ unreachable }) => unreachable !== undefined)
  const named = gone.slice(0, 5).map(({ name, unreachable }) => `${name} (${unreachable})`)
  return when(gone.length > 0, {
    what: `${gone.length} node${gone.length === 1 ? '' : 's'} cannot be reached: ${named.join(', ')}`,
    why: 'a node that is left behind loses its cluster in phase 12',
    next: 'bring it back, or delete the Node',
  })
}

function when(is: boolean, refusal: Refusal): readonly Refusal[] {
  return is ? [refusal] : []
}
