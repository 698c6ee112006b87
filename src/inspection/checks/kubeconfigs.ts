import { withoutBrackets } from '../../errors/host-port.ts'
import type { Certificate } from '../../x509/certificate.ts'
import {
  type CertificateEntry,
  type Group,
  type KubeconfigEntry,
  kubeadmPlaceOf,
  leafOf,
} from '../entries.ts'
import { nameText, problemAt } from '../problems.ts'
import type { Problem } from '../report.ts'
import type { Snapshot, SnapshotCheck } from './check.ts'
import { placeText } from './time.ts'
import { casOfTrees, certificatesOf, namesakeText, type TreeCas, treeOf } from './trust.ts'

// The parts that a kubeconfig combines: a server and the CA that verifies it, a cluster and a user.

/**
 * The clusters, users and contexts that a context of one file may refer to: those of its file, or those of all files in
 * $KUBECONFIG.
 */
interface Scope {
  readonly clusters: ReadonlyMap<string, KubeconfigEntry['clusters'][number]>
  readonly users: ReadonlyMap<string, KubeconfigEntry['users'][number]>
  /** The file whose context is used, by name. */
  readonly contexts: ReadonlyMap<string, KubeconfigEntry>
  /** Where the missing name was searched. */
  readonly where: string
  readonly fix: string
}

/** Several files form one configuration. The first file that contains a name is used, as in kubectl. */
function scopeOf(files: readonly KubeconfigEntry[]): Scope {
  // A Map keeps the last of several entries with one name. In reverse order, this is the entry of the first file.
  const backwards = files.toReversed()
  const named = <Item extends { readonly name: string }>(list: readonly Item[]) =>
    list.toReversed().map((item) => [item.name, item] as const)
  return {
    clusters: new Map(backwards.flatMap(({ clusters }) => named(clusters))),
    users: new Map(backwards.flatMap(({ users }) => named(users))),
    contexts: new Map(backwards.flatMap((file) => file.contexts.map(({ name }) => [name, file] as const))),
    ...(files.length > 1
      ? { where: 'in no file of $KUBECONFIG', fix: 'correct the name' }
      : { where: 'not in this file', fix: 'correct the name, unless another file of $KUBECONFIG has it' }),
  }
}

/** Returns the kubeconfigs that form one configuration, in the order of $KUBECONFIG. */
function mergedOf({ collection, mergedKubeconfigs }: Snapshot): KubeconfigEntry[] {
  return mergedKubeconfigs.flatMap(
    (name) => collection.kubeconfigs.find(({ source, entry }) => source === name && entry === '') ?? [],
  )
}

/** Returns the scope of each kubeconfig's contexts. */
function scopesOf(snapshot: Snapshot): Map<KubeconfigEntry, Scope> {
  const merged = mergedOf(snapshot)
  const shared = scopeOf(merged)
  return new Map(
    snapshot.collection.kubeconfigs.map((one) => [one, merged.includes(one) ? shared : scopeOf([one])]),
  )
}

/**
 * Returns a function that tells whether clients use a context. Among several files of $KUBECONFIG the first current-context is
 * used, as in kubectl.
 */
export function currentContexts(
  snapshot: Snapshot,
): (kubeconfig: KubeconfigEntry, context: string) => boolean {
  const merged = mergedOf(snapshot)
  const { contexts } = scopeOf(merged)
  const current = merged.find(({ currentContext }) => currentContext !== undefined)?.currentContext
  return (kubeconfig, context) =>
    merged.includes(kubeconfig)
      ? context === current && contexts.get(context) === kubeconfig
      : context === kubeconfig.currentContext
}

/** Finds names in a context or in current-context that do not exist. */
const checkNames: SnapshotCheck = (snapshot) => {
  if (snapshot.collection.kubeconfigs.length === 0) return []
  const problems: Problem[] = []
  for (const [kubeconfig, scope] of scopesOf(snapshot)) {
    const { source, entry: prefix, contexts, currentContext } = kubeconfig
    const say = (at: string, what: string, name: string) =>
      problems.push(
        problemAt({ source, entry: prefix === '' ? at : `${prefix} ${at}` }, 'KUBECONFIG_NAME_DANGLES', {
          message: `${what} ${nameText(name)} is ${scope.where}`,
          fix: scope.fix,
        }),
      )
    for (const { name, cluster, user } of contexts) {
      const at = `context ${nameText(name)}`
      if (!scope.clusters.has(cluster)) say(at, 'cluster', cluster)
      if (!scope.users.has(user)) say(at, 'user', user)
    }
    if (currentContext !== undefined && !scope.contexts.has(currentContext))
      say('current-context', 'context', currentContext)
  }
  return problems
}

/** Each kubeconfig must trust its server, and its client certificates must be from the same CA. */
const checkKubeconfigs: SnapshotCheck = (snapshot) => {
  if (snapshot.collection.kubeconfigs.length === 0) return []
  const servers = snapshot.collection.groups.filter(isApiServers)
  const trees = casOfTrees(snapshot)
  return [...scopesOf(snapshot)].flatMap(([one, scope]) =>
    checkKubeconfig(one, scope, snapshot, servers, trees),
  )
}

function checkKubeconfig(
  kubeconfig: KubeconfigEntry,
  scope: Scope,
  snapshot: Snapshot,
  allServers: readonly Group[],
  trees: TreeCas,
): Problem[] {
  const problems: Problem[] = []
  for (const { server, group } of kubeconfig.clusters) {
    if (group === undefined || group.certificates.length === 0) continue
    const servers = serversOf(kubeconfig, server, allServers)
    // 127.0.0.1 and 10.96.0.1 are SANs of every cluster's server. A certificate that this CA signed belongs to the right one.
    const served = servers.filter(({ owner }) => owner.kind === 'served')
    const meant = served.length > 0 ? served : servers
    const isKnown = meant.some((one) => snapshot.links.reaches(certificatesOf(one), certificatesOf(group)))
    const [first] = meant
    const leaf = first?.certificates[0]
    if (first !== undefined && leaf !== undefined && !isKnown) problems.push(notOfServer(group, first, leaf))
  }
  for (const { cluster, user } of pairsOf(kubeconfig, scope)) {
    const ca = scope.clusters.get(cluster)?.group
    const client = scope.users.get(user)?.group
    const leaf = client && leafOf(client)
    if (ca === undefined || ca.certificates.length === 0 || client === undefined || leaf === undefined)
      continue
    // In a kubeadm folder the CA itself is available, and the check against it reports more.
    if (snapshot.roleOf(leaf).row !== undefined && hasTreeCa(leaf, trees)) continue
    if (snapshot.links.reaches(certificatesOf(client), certificatesOf(ca))) continue
    problems.push(
      problemAt(leaf, 'KUBECONFIG_CA_NOT_OF_CLIENT', {
        message: notOfClientText(leaf.certificate, ca, cluster),
        fix: 'if the API server rejects the certificate (401), use a kubeconfig of this cluster; nothing is wrong if the API server has a serving certificate of another CA',
      }),
    )
  }
  return problems
}

function notOfClientText(certificate: Certificate, ca: Group, cluster: string): string {
  const name = JSON.stringify(nameText(cluster))
  const namesake = namesakeText(certificate, ca, `the one of cluster ${name}`)
  return namesake === undefined
    ? `cluster ${name} trusts another CA than the one that signed this certificate, ${JSON.stringify(certificate.issuer.text)}`
    : `signed by ${namesake}`
}

function hasTreeCa(entry: CertificateEntry, trees: TreeCas): boolean {
  const tree = treeOf(entry)
  return tree !== undefined && trees.get(tree)?.has('ca') === true
}

function notOfServer(ca: Group, server: Group, { certificate }: CertificateEntry): Problem {
  const namesake = namesakeText(certificate, ca, 'this one')
  const signed =
    namesake === undefined
      ? `not signed by this CA, but by ${JSON.stringify(certificate.issuer.text)}`
      : `signed by ${namesake}`
  return problemAt(ca, 'KUBECONFIG_CA_NOT_OF_SERVER', {
    message: `the certificate of the API server (${placeText(server)}) is ${signed}`,
    fix: 'put the CA of the API server (/etc/kubernetes/pki/ca.crt of a control-plane node) into certificate-authority-data',
  })
}

/** Returns each pair of cluster and user that a context of this file combines, once. */
function pairsOf(
  kubeconfig: KubeconfigEntry,
  scope: Scope,
): readonly { readonly cluster: string; readonly user: string }[] {
  const contexts = kubeconfig.contexts.filter(({ name }) => scope.contexts.get(name) === kubeconfig)
  const pairs = new Map(contexts.map((context) => [JSON.stringify([context.cluster, context.user]), context]))
  return [...pairs.values()]
}

/**
 * Returns the serving certificates in the inputs that this cluster's server would serve: the chain served at its address, or
 * kubeadm's apiserver.crt from the same folder, or one with the server's host in its SANs.
 */
function serversOf(
  kubeconfig: KubeconfigEntry,
  server: string | undefined,
  servers: readonly Group[],
): Group[] {
  const address = addressOf(server)
  const tree = kubeconfig.origin.treePlace?.tree
  return servers.filter((group) => {
    if (group.owner.kind === 'served') return address !== undefined && group.source === address.authority
    if (tree !== undefined) return group.origin.treePlace?.tree === tree
    const [leaf] = group.certificates
    return address !== undefined && leaf !== undefined && hasName(leaf.certificate, address.host)
  })
}

function isApiServers(group: Group): boolean {
  const { owner, origin } = group
  if (leafOf(group) === undefined) return false
  if (owner.kind === 'served') return true
  const place = kubeadmPlaceOf(origin)
  return owner.kind === 'file' && place?.row.name === 'apiserver' && place.part === 'certificate'
}

function addressOf(server: string | undefined): { host: string; authority: string } | undefined {
  if (server === undefined) return undefined
  const url = URL.parse(server.includes('://') ? server : `https://${server}`)
  if (url === null || url.hostname === '') return undefined
  return { host: withoutBrackets(url.hostname), authority: `${url.hostname}:${url.port || '443'}` }
}

function hasName({ subjectAltNames }: Certificate, host: string): boolean {
  return subjectAltNames.dns.some((name) => name.toLowerCase() === host) || subjectAltNames.ip.includes(host)
}

/** What kubeconfigs combine. */
export const kubeconfigChecks: readonly SnapshotCheck[] = [checkKubeconfigs, checkNames]
