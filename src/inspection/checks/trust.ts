import type { KubeadmTree } from '../../pki/kubeadm-tree.ts'
import type { Certificate } from '../../x509/certificate.ts'
import { kubeadmAdvice, renewalAdvice } from '../advice.ts'
import type { CertificateEntry, Group, KubeconfigEntry, ObjectEntry } from '../entries.ts'
import { problemAt } from '../problems.ts'
import type { Problem } from '../report.ts'
import type { CertificateCheck, Picture, PictureCheck } from './check.ts'
import { placeText } from './time.ts'

// Who should have signed what: kubeadm's table, kubeconfigs, Secrets with their own CA.

function certificatesOf(group: Group): Certificate[] {
  return group.certificates.map(({ certificate }) => certificate)
}

/** The key that stands beside a certificate is that of another. */
export const checkKey: CertificateCheck = (entry, role, { links }) => {
  const found = links.keyOf(entry)
  if (found === undefined || found.matches) return undefined
  const { key, own } = found
  const mine = own && (own.source === entry.source && own.entry !== '' ? own.entry : placeText(own))
  const renewal = renewalAdvice(entry, role, 'wrong')
  return problemAt(entry, 'KEY_MISMATCH', {
    message: `the key in ${key.source === entry.source && key.entry !== '' ? key.entry : placeText(key)} is not the one of this certificate${mine === undefined ? '' : `; its key is in ${mine}`}`,
    next:
      mine === undefined
        ? `bring back the key or the certificate that belongs to it, or issue both anew: ${renewal}`
        : `put the key of ${mine} and the certificate together again, or issue both anew: ${renewal}`,
  })
}

interface TreeCas {
  readonly tree: KubeadmTree
  readonly groups: ReadonlyMap<string, Group>
}

function casOfTrees({ collection }: Picture): Map<KubeadmTree, TreeCas> {
  const trees = new Map<KubeadmTree, { tree: KubeadmTree; groups: Map<string, Group> }>()
  for (const group of collection.groups) {
    const place = group.origin.treePlace
    if (group.owner.kind !== 'file' || place === undefined || !('row' in place) || place.row.kind !== 'ca')
      continue
    if (group.certificates.length === 0) continue
    const known = trees.get(place.tree) ?? { tree: place.tree, groups: new Map() }
    known.groups.set(place.row.name, group)
    trees.set(place.tree, known)
  }
  return trees
}

/** In a kubeadm folder each leaf is signed by the CA that the table names, and ca.crt is one certificate. */
export const checkTrees: PictureCheck = (picture) => {
  const problems: Problem[] = []
  const trees = casOfTrees(picture)
  for (const { groups } of trees.values()) {
    const ca = groups.get('ca')
    if (ca !== undefined && ca.certificates.length > 1) problems.push(notSingle(ca))
  }
  for (const entry of picture.collection.certificates) {
    const { row } = picture.roleOf(entry)
    const tree = treeOf(entry)
    if (row === undefined || row.kind === 'ca' || tree === undefined || entry.position > 0) continue
    const ca = trees.get(tree)?.groups.get(row.signer)
    if (ca === undefined || picture.links.reaches(certificatesOf(entry.group), certificatesOf(ca))) continue
    problems.push(
      problemAt(entry, 'CA_NOT_IN_BUNDLE', {
        message: `signed by none of the certificates in ${ca.source}, but by ${JSON.stringify(entry.certificate.issuer.text)}`,
        next: `when ${ca.source} is the right CA: ${kubeadmAdvice(row, 'misissued')}`,
      }),
    )
  }
  return problems
}

function treeOf({ group }: CertificateEntry): KubeadmTree | undefined {
  const place = group.owner.kind === 'user' ? group.owner.kubeconfig.origin.treePlace : group.origin.treePlace
  return place !== undefined && 'row' in place ? place.tree : undefined
}

function notSingle(ca: Group): Problem {
  return problemAt(ca, 'CA_FILE_NOT_SINGLE', {
    message: `${ca.certificates.length} certificates, where kube-controller-manager signs with a file of exactly one`,
    next: 'see that --cluster-signing-cert-file in /etc/kubernetes/manifests/kube-controller-manager.yaml names a file with one certificate, before that process next starts',
  })
}

/** Each kubeconfig trusts the server it speaks to, and its client certificates come from the same CA. */
export const checkKubeconfigs: PictureCheck = (picture) => {
  if (picture.collection.kubeconfigs.length === 0) return []
  const servers = picture.collection.groups.filter(isApiServers)
  const trees = casOfTrees(picture)
  return picture.collection.kubeconfigs.flatMap((one) => checkKubeconfig(one, picture, servers, trees))
}

function checkKubeconfig(
  kubeconfig: KubeconfigEntry,
  picture: Picture,
  allServers: readonly Group[],
  trees: ReadonlyMap<KubeadmTree, TreeCas>,
): Problem[] {
  const problems: Problem[] = []
  for (const { server, group } of kubeconfig.clusters) {
    if (group === undefined || group.certificates.length === 0) continue
    const servers = serversOf(kubeconfig, server, allServers)
    // 127.0.0.1 and 10.96.0.1 are names of every cluster's server: one that this CA signed is the one that is meant.
    const served = servers.filter(({ owner }) => owner.kind === 'served')
    const meant = served.length > 0 ? served : servers
    const isKnown = meant.some((one) => picture.links.reaches(certificatesOf(one), certificatesOf(group)))
    if (meant[0] !== undefined && !isKnown) problems.push(notOfServer(group, meant[0]))
  }
  const clusters = new Map(kubeconfig.clusters.map(({ name, group }) => [name, group]))
  const users = new Map(kubeconfig.users.map(({ name, group }) => [name, group]))
  for (const { cluster, user } of pairsOf(kubeconfig)) {
    const ca = clusters.get(cluster)
    const client = users.get(user)
    const leaf = client?.certificates[0]
    if (ca === undefined || ca.certificates.length === 0 || client === undefined || leaf === undefined)
      continue
    // In a kubeadm folder the CA itself is there to compare with, and says more.
    if (picture.roleOf(leaf).row !== undefined && hasTreeCa(leaf, trees)) continue
    if (picture.links.reaches(certificatesOf(client), certificatesOf(ca))) continue
    problems.push(
      problemAt(leaf, 'KUBECONFIG_CA_NOT_OF_CLIENT', {
        message: `cluster ${JSON.stringify(cluster)} trusts another CA than the one that signed this certificate, ${JSON.stringify(leaf.certificate.issuer.text)}`,
        next: 'when the certificate is refused (401), take a kubeconfig of this cluster; nothing is wrong where the API server has its own certificate from elsewhere',
      }),
    )
  }
  return problems
}

function hasTreeCa(entry: CertificateEntry, trees: ReadonlyMap<KubeadmTree, TreeCas>): boolean {
  const tree = treeOf(entry)
  return tree !== undefined && trees.get(tree)?.groups.has('ca') === true
}

function notOfServer(ca: Group, server: Group): Problem {
  const [leaf] = server.certificates
  return problemAt(ca, 'KUBECONFIG_CA_NOT_OF_SERVER', {
    message: `the certificate of the API server (${placeText(server)}) is not signed by this CA, but by ${JSON.stringify(leaf!.certificate.issuer.text)}`,
    next: 'put the CA of the API server (/etc/kubernetes/pki/ca.crt of a control-plane node) into certificate-authority-data',
  })
}

/** Each pair of cluster and user that a context brings together, once. */
function pairsOf({ contexts }: KubeconfigEntry): { cluster: string; user: string }[] {
  const pairs = new Map(contexts.map((context) => [JSON.stringify([context.cluster, context.user]), context]))
  return [...pairs.values()]
}

/**
 * Serving certificates among the inputs that this cluster's server would show: the chain served at its address, or kubeadm's
 * apiserver.crt, of the same folder, or with the server's host among its names.
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
    return address !== undefined && hasName(group.certificates[0]!.certificate, address.host)
  })
}

function isApiServers({ certificates, owner, origin }: Group): boolean {
  if (certificates.length === 0) return false
  if (owner.kind === 'served') return true
  const place = origin.treePlace
  return (
    owner.kind === 'file' &&
    place !== undefined &&
    'row' in place &&
    place.row.name === 'apiserver' &&
    place.part === 'certificate'
  )
}

function addressOf(server: string | undefined): { host: string; authority: string } | undefined {
  if (server === undefined) return undefined
  const url = URL.parse(server.includes('://') ? server : `https://${server}`)
  if (url === null || url.hostname === '') return undefined
  return { host: url.hostname.replace(/^\[|\]$/g, ''), authority: `${url.hostname}:${url.port || '443'}` }
}

function hasName({ subjectAltNames }: Certificate, host: string): boolean {
  return subjectAltNames.dns.some((name) => name.toLowerCase() === host) || subjectAltNames.ip.includes(host)
}

/** A Secret with a certificate and the CA to check it by. */
export const checkSecrets: PictureCheck = ({ collection, links }) =>
  collection.objects.flatMap((object) => {
    const leaf = valueGroup(object, 'tls.crt')
    const ca = valueGroup(object, 'ca.crt')
    if (leaf === undefined || ca === undefined || links.reaches(certificatesOf(leaf), certificatesOf(ca)))
      return []
    return problemAt(leaf.certificates[0]!, 'CA_NOT_IN_BUNDLE', {
      message: `the ca.crt beside it did not sign it; ${JSON.stringify(leaf.certificates[0]!.certificate.issuer.text)} did`,
      next: 'put that CA into ca.crt of the Secret; whoever checks by this Secret refuses the certificate until then',
    })
  })

function valueGroup({ groups }: ObjectEntry, key: string): Group | undefined {
  return groups.find(
    ({ owner, certificates }) => owner.kind === 'value' && owner.key === key && certificates.length > 0,
  )
}

/** The same certificate twice in one bundle; said once for each. */
export const checkDuplicates: PictureCheck = ({ collection }) =>
  collection.groups.flatMap((group) => {
    if (group.certificates.length < 2) return []
    const first = new Map<Certificate, CertificateEntry>()
    return group.certificates.flatMap((entry) => {
      const known = first.get(entry.certificate)
      if (known === undefined) {
        first.set(entry.certificate, entry)
        return []
      }
      return problemAt(entry, 'BUNDLE_MEMBER_DUPLICATE', {
        message: `the same certificate as ${known.entry}`,
        next: 'remove one of them',
      })
    })
  })

/** Requests that their own key did not sign, and issued certificates with another key than was asked for. */
export const checkRequests: PictureCheck = ({ collection }) => [
  ...collection.requests
    .filter(({ request }) => !request.signatureIsValid())
    .map((entry) =>
      problemAt(entry, 'REQUEST_SIGNATURE_WRONG', {
        message: 'not signed by the key in it, or by an algorithm that the API server does not take',
        next: 'make the request anew with its own private key',
      }),
    ),
  ...collection.groups.flatMap((group) => {
    const [leaf] = group.certificates
    if (group.owner.kind !== 'issued' || group.owner.request === undefined || leaf === undefined) return []
    if (leaf.certificate.publicKey.sha256 === group.owner.request.request.publicKey.sha256) return []
    return problemAt(leaf, 'KEY_MISMATCH', {
      message: 'issued for another key than the one in the request beside it',
      next: 'delete the request and make a new one; look into what signed this',
    })
  }),
]
