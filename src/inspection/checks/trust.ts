import { commandLine } from '../../errors/command-line.ts'
import { kubeadmFolders } from '../../pki/kubeadm.ts'
import type { KubeadmTree } from '../../pki/kubeadm-tree.ts'
import type { Certificate } from '../../x509/certificate.ts'
import { unknownBefore138 } from '../../x509/go-keys.ts'
import { kubeadmAdvice, reissueAdvice, renewalAdvice } from '../advice.ts'
import {
  type CertificateEntry,
  type Group,
  type KeyEntry,
  leafOf,
  type ObjectEntry,
  type RequestEntry,
} from '../entries.ts'
import { problemAt } from '../problems.ts'
import type { Problem } from '../report.ts'
import type { CertificateCheck, Snapshot, SnapshotCheck } from './check.ts'
import { placeText } from './time.ts'

// Who should have signed what: kubeadm's table, kubeconfigs, Secrets with their own CA.

export function certificatesOf(group: Group): Certificate[] {
  return group.certificates.map(({ certificate }) => certificate)
}

/**
 * Returns by whom a certificate is signed, where the CA of that name in `group` is another: names alone would look the same.
 * Undefined when none of them has the name.
 */
export function namesakeText(certificate: Certificate, group: Group, whose: string): string | undefined {
  const { issuer, authorityKeyId } = certificate
  const [same] = namesakesIn(certificate, group)
  if (same === undefined) return undefined
  if (isUncheckableBy(certificate, group))
    return `a CA named ${JSON.stringify(issuer.text)}, and whether it is ${whose} is unknown: ${uncheckedText(certificate)}`
  const name = `another CA of the same name, ${JSON.stringify(issuer.text)}`
  const { subjectKeyId } = same
  return authorityKeyId === undefined || subjectKeyId === undefined || authorityKeyId === subjectKeyId
    ? `${name}: its signature is by another key than that of ${whose}`
    : `${name}, of key id ${authorityKeyId}; ${whose} has ${subjectKeyId}`
}

function namesakesIn({ issuer }: Certificate, group: Group): Certificate[] {
  return certificatesOf(group).filter(({ subject }) => subject.equals(issuer))
}

function isUncheckableBy(certificate: Certificate, group: Group): boolean {
  return namesakesIn(certificate, group).some((namesake) => certificate.isUncheckableFor(namesake))
}

/** "the signature cannot be checked: this Node's OpenSSL does not know ML-DSA-65" */
function uncheckedText({ signatureAlgorithm }: Pick<Certificate, 'signatureAlgorithm'>): string {
  return `the signature cannot be checked: this Node's OpenSSL does not know ${signatureAlgorithm}`
}

/** The key that stands beside a certificate is that of another. */
export const checkKey: CertificateCheck = (entry, role, { links }) => {
  const found = links.keyOf(entry)
  if (found === undefined || found.matches) return undefined
  const nameOf = (key: KeyEntry) =>
    key.source === entry.source && key.entry !== '' ? key.entry : placeText(key)
  const mine = found.own && nameOf(found.own)
  const what =
    mine === undefined
      ? 'bring back the key or the certificate that belongs to it, or reissue both'
      : `put the key of ${mine} and the certificate together again, or reissue both`
  return problemAt(entry, 'KEY_MISMATCH', {
    message: `the key in ${nameOf(found.key)} is not the one of this certificate${mine === undefined ? '' : `; its key is in ${mine}`}`,
    next: reissueAdvice(what, entry, role, 'wrong'),
  })
}

/** The CAs of kubeadm's folders, by their names in its table. */
export type TreeCas = ReadonlyMap<KubeadmTree, ReadonlyMap<string, Group>>

export function casOfTrees({ collection }: Snapshot): TreeCas {
  const trees = new Map<KubeadmTree, Map<string, Group>>()
  for (const group of collection.groups) {
    const { treePlace: place } = group.origin
    if (group.owner.kind !== 'file' || place === undefined || !('row' in place) || place.row.kind !== 'ca')
      continue
    if (group.certificates.length === 0) continue
    trees.set(place.tree, (trees.get(place.tree) ?? new Map()).set(place.row.name, group))
  }
  return trees
}

/** In a kubeadm folder each leaf is signed by the CA that the table names, and ca.crt is one certificate. */
export const checkTrees: SnapshotCheck = (snapshot) => {
  const trees = casOfTrees(snapshot)
  if (trees.size === 0) return []
  const bundles = [...trees.values()].flatMap((groups) => groups.get('ca') ?? [])
  const problems = bundles.filter(({ certificates }) => certificates.length > 1).map(notSingle)
  for (const entry of snapshot.collection.certificates) {
    const { row } = snapshot.roleOf(entry)
    const tree = treeOf(entry)
    if (row === undefined || row.kind === 'ca' || tree === undefined || entry.position > 0) continue
    const ca = trees.get(tree)?.get(row.signer)
    if (ca === undefined || snapshot.links.reaches(certificatesOf(entry.group), certificatesOf(ca))) continue
    problems.push(notSigned(entry, ca, kubeadmAdvice(row, 'misissued')))
  }
  return problems
}

function notSigned(entry: CertificateEntry, ca: Group, advice: string): Problem {
  const { certificate } = entry
  const stranger = `none of the certificates in ${ca.source}, but by ${JSON.stringify(certificate.issuer.text)}`
  return problemAt(entry, 'CA_NOT_IN_BUNDLE', {
    message: `signed by ${namesakeText(certificate, ca, `the one in ${ca.source}`) ?? stranger}`,
    next: [`when ${ca.source} is the right CA`, advice].join(': '),
  })
}

const kubeletPart = '/var/lib/kubelet/pki'

/** The kubelet's client certificate is signed by the CA of the node's own pki folder, which the API server trusts too. */
export const checkKubelets: SnapshotCheck = (snapshot) => {
  const problems: Problem[] = []
  let cas: Map<string, Group> | undefined
  for (const entry of snapshot.collection.certificates) {
    const place = entry.group.origin.treePlace
    if (entry.position > 0 || entry.group.owner.kind !== 'file' || place?.tree.kind !== 'kubelet') continue
    const role = snapshot.roleOf(entry)
    if (role.kubelet !== 'kubelet-client' || role.isRecord || !place.tree.folder.endsWith(kubeletPart))
      continue
    cas ??= new Map(
      [...casOfTrees(snapshot)].flatMap(([{ pkiFolder }, groups]) => {
        const found = groups.get('ca')
        return found === undefined ? [] : [[pkiFolder, found] as const]
      }),
    )
    const ca = cas.get(place.tree.folder.slice(0, -kubeletPart.length) + kubeadmFolders.pki)
    if (ca === undefined || snapshot.links.reaches(certificatesOf(entry.group), certificatesOf(ca))) continue
    problems.push(notSigned(entry, ca, renewalAdvice(entry, role, 'misissued')))
  }
  return problems
}

export function treeOf({ group }: CertificateEntry): KubeadmTree | undefined {
  const place = group.owner.kind === 'user' ? group.owner.kubeconfig.origin.treePlace : group.origin.treePlace
  return place !== undefined && 'row' in place ? place.tree : undefined
}

function notSingle(ca: Group): Problem {
  return problemAt(ca, 'CA_FILE_NOT_SINGLE', {
    message: `${ca.certificates.length} certificates, where kube-controller-manager signs with a file of exactly one`,
    next: 'see that --cluster-signing-cert-file in /etc/kubernetes/manifests/kube-controller-manager.yaml names a file with one certificate, before that process next starts',
  })
}

/** A Secret with a certificate and the CA to check it by. */
export const checkSecrets: SnapshotCheck = ({ collection, links }) =>
  collection.objects.flatMap((object) => {
    const chain = valueGroup(object, 'tls.crt')
    const ca = valueGroup(object, 'ca.crt')
    const leaf = chain && leafOf(chain)
    if (
      leaf === undefined ||
      ca === undefined ||
      links.reaches(certificatesOf(leaf.group), certificatesOf(ca))
    )
      return []
    const { certificate } = leaf
    const signer = namesakeText(certificate, ca, 'ca.crt') ?? JSON.stringify(certificate.issuer.text)
    return problemAt(leaf, 'CA_NOT_IN_BUNDLE', {
      message: isUncheckableBy(certificate, ca)
        ? `signed by ${signer}`
        : `the ca.crt beside it did not sign it; ${signer} did`,
      next: 'put that CA into ca.crt of the Secret; whoever checks by this Secret refuses the certificate until then',
    })
  })

function valueGroup({ groups }: ObjectEntry, key: string): Group | undefined {
  return groups.find(
    ({ owner, certificates }) => owner.kind === 'value' && owner.key === key && certificates.length > 0,
  )
}

/** The same certificate twice in one bundle; said once for each. */
export const checkDuplicates: SnapshotCheck = ({ collection }) =>
  collection.groups
    .filter(({ certificates }) => certificates.length > 1)
    .flatMap((group) => {
      const first = new Map(group.certificates.toReversed().map((entry) => [entry.certificate, entry]))
      return group.certificates.flatMap((entry) => {
        const known = first.get(entry.certificate) ?? entry
        const message = `the same certificate as ${known.entry}`
        const next = 'remove one of them'
        return known === entry ? [] : problemAt(entry, 'BUNDLE_MEMBER_DUPLICATE', { message, next })
      })
    })

/** API servers sign the tokens of service accounts with sa.key, and take those that a key of sa.pub has signed. */
export const checkServiceAccountKeys: SnapshotCheck = ({ collection }) => {
  const keys = collection.keys.flatMap((key) => {
    const place = key.group.origin.treePlace
    return place !== undefined && 'row' in place && place.row.kind === 'service-account-key'
      ? [{ key, tree: place.tree, part: place.part }]
      : []
  })
  return keys.flatMap(({ key: signing, tree, part }) => {
    if (part !== 'key' || signing.publicKey === undefined) return []
    const taken = keys.filter((one) => one.part === 'public-key' && one.tree === tree).map(({ key }) => key)
    const [first] = taken
    const { sha256 } = signing.publicKey
    if (first === undefined || taken.some(({ publicKey }) => publicKey?.sha256 === sha256)) return []
    return problemAt(signing, 'KEY_MISMATCH', {
      message: `${placeText(first)} does not have its public half: tokens of service accounts that are signed here are refused here`,
      next: commandLine`copy both from a control-plane node whose pods work, or write sa.pub again and restart kube-apiserver: openssl pkey -in ${signing.source} -pubout -out ${first.source}`,
    })
  })
}

/** Requests that their own key did not sign, and issued certificates with another key than was asked for. */
export const checkRequests: SnapshotCheck = ({ collection }) => [
  ...collection.requests.flatMap((entry) => signatureProblem(entry) ?? []),
  ...collection.groups
    .filter(({ owner }) => owner.kind === 'issued')
    .flatMap((group) => {
      const leaf = leafOf(group)
      if (group.owner.kind !== 'issued' || group.owner.request === undefined || leaf === undefined) return []
      if (leaf.certificate.publicKey.sha256 === group.owner.request.request.publicKey.sha256) return []
      return problemAt(leaf, 'KEY_MISMATCH', {
        message: 'issued for another key than the one in the request beside it',
        next: 'delete the request and make a new one; look into what signed this',
      })
    }),
]

function signatureProblem(entry: RequestEntry): Problem | undefined {
  const { request } = entry
  if (request.verifySignature().ok) return undefined
  const verdict = request.verifySignature('possession')
  if (verdict.ok)
    return problemAt(entry, 'SIGNATURE_UNSUPPORTED', {
      message: `signed with ${request.signatureAlgorithm}, which ${unknownBefore138}`,
      next: 'create a new request with a key of ECDSA P-256: kcert csr create --key-out FILE',
    })
  return problemAt(entry, 'REQUEST_SIGNATURE_WRONG', {
    message:
      verdict.reason === 'cannot-be-checked'
        ? uncheckedText(request)
        : 'not signed by the key in it, or by an algorithm that the API server does not take',
    next: 'create a new request with its own private key',
  })
}
