import { commandLine } from '../../errors/command-line.ts'
import type { Advice } from '../../errors/kcert-error.ts'
import { kubeadmFolders } from '../../pki/kubeadm.ts'
import type { KubeadmTree } from '../../pki/kubeadm-tree.ts'
import type { Certificate } from '../../x509/certificate.ts'
import { unknownBefore138 } from '../../x509/go-keys.ts'
import { kubeadmAdvice, reissueAdvice, renewalAdvice } from '../advice.ts'
import {
  type CertificateEntry,
  type Group,
  type KeyEntry,
  kubeadmPlaceOf,
  leafOf,
  type ObjectEntry,
  type RequestEntry,
} from '../entries.ts'
import { problemAt } from '../problems.ts'
import type { Problem } from '../report.ts'
import type { CertificateCheck, Snapshot, SnapshotCheck } from './check.ts'
import { placeText } from './time.ts'

// The CA that must have signed a certificate: by kubeadm's table, in kubeconfigs, and in Secrets with their own CA.

export function certificatesOf(group: Group): Certificate[] {
  return group.certificates.map(({ certificate }) => certificate)
}

/**
 * Returns a text about the signer of a certificate when `group` has another CA with the same name. Returns undefined if no CA in
 * the group has the name.
 */
export function namesakeText(certificate: Certificate, group: Group, whose: string): string | undefined {
  const { issuer, authorityKeyId } = certificate
  const [same] = namesakesIn(certificate, group)
  if (same === undefined) return undefined
  if (isUncheckableBy(certificate, group))
    return `a CA named ${JSON.stringify(issuer.text)}, but whether it is ${whose} is unknown: ${uncheckedText(certificate)}`
  const name = `another CA of the same name, ${JSON.stringify(issuer.text)}`
  const { subjectKeyId } = same
  return authorityKeyId === undefined || subjectKeyId === undefined || authorityKeyId === subjectKeyId
    ? `${name}, with another key than ${whose}`
    : `${name}, with key ID ${authorityKeyId}; ${whose} has ${subjectKeyId}`
}

function namesakesIn({ issuer }: Certificate, group: Group): Certificate[] {
  return certificatesOf(group).filter(({ subject }) => subject.equals(issuer))
}

function isUncheckableBy(certificate: Certificate, group: Group): boolean {
  return namesakesIn(certificate, group).some((namesake) => certificate.isUncheckableFor(namesake))
}

/** "the signature cannot be checked: the OpenSSL of this Node.js does not support ML-DSA-65" */
function uncheckedText({ signatureAlgorithm }: Pick<Certificate, 'signatureAlgorithm'>): string {
  return `the signature cannot be checked: the OpenSSL of this Node.js does not support ${signatureAlgorithm}`
}

/** Finds a key that does not match the certificate at the corresponding path. */
export const checkKey: CertificateCheck = (entry, role, { links }) => {
  const found = links.keyOf(entry)
  if (found === undefined || found.matches) return undefined
  const nameOf = (key: KeyEntry) =>
    key.source === entry.source && key.entry !== '' ? key.entry : placeText(key)
  const ownKey = found.own && nameOf(found.own)
  const what =
    ownKey === undefined
      ? 'restore the key or the certificate that belongs to it, or reissue both'
      : `use the key in ${ownKey} with this certificate, or reissue both`
  return problemAt(entry, 'KEY_MISMATCH', {
    message: `the key in ${nameOf(found.key)} does not match this certificate${ownKey === undefined ? '' : `; its key is in ${ownKey}`}`,
    ...reissueAdvice(what, entry, role, 'wrong'),
  })
}

/** The CAs of kubeadm's folders, by their names in kubeadm's table. */
export type TreeCas = ReadonlyMap<KubeadmTree, ReadonlyMap<string, Group>>

export function casOfTrees({ collection }: Snapshot): TreeCas {
  const trees = new Map<KubeadmTree, Map<string, Group>>()
  for (const group of collection.groups) {
    const place = kubeadmPlaceOf(group.origin)
    if (group.owner.kind !== 'file' || place?.row.kind !== 'ca' || group.certificates.length === 0) continue
    trees.set(place.tree, (trees.get(place.tree) ?? new Map()).set(place.row.name, group))
  }
  return trees
}

/** In a kubeadm folder, the CA in the table must sign each leaf, and ca.crt must be a single certificate. */
const checkTrees: SnapshotCheck = (snapshot) => {
  const trees = casOfTrees(snapshot)
  if (trees.size === 0) return []
  const bundles = [...trees.values()].flatMap((groups) => groups.get('ca') ?? [])
  const problems = bundles
    .filter(({ certificates }) => certificates.length > 1)
    .map((ca) =>
      problemAt(ca, 'CA_FILE_NOT_SINGLE', {
        message: `${ca.certificates.length} certificates, but kube-controller-manager signs only with a file that contains one`,
        fix: 'before kube-controller-manager restarts, set --cluster-signing-cert-file in its manifest to a file with one certificate',
        next: 'grep -e --cluster-signing-cert-file /etc/kubernetes/manifests/kube-controller-manager.yaml',
      }),
    )
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

function notSigned(entry: CertificateEntry, ca: Group, { fix, next }: Advice): Problem {
  const { certificate } = entry
  const stranger = `a CA that is not in ${ca.source}: ${JSON.stringify(certificate.issuer.text)}`
  return problemAt(entry, 'CA_NOT_IN_BUNDLE', {
    message: `signed by ${namesakeText(certificate, ca, `the one in ${ca.source}`) ?? stranger}`,
    fix: [`if ${ca.source} is the right CA`, fix].join(', '),
    next,
  })
}

const kubeletPart = '/var/lib/kubelet/pki'

/** The CA of the node's pki folder, which the API server trusts too, must sign the kubelet's client certificate. */
const checkKubelets: SnapshotCheck = (snapshot) => {
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
  const origin = group.owner.kind === 'user' ? group.owner.kubeconfig.origin : group.origin
  return kubeadmPlaceOf(origin)?.tree
}

/** A Secret with a certificate and the CA to verify it with. */
const checkSecrets: SnapshotCheck = ({ collection, links }) =>
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
        : `signed by ${signer}, not by ca.crt of the same Secret`,
      fix: 'put that CA into ca.crt of the Secret: until then clients that use this Secret reject the certificate',
    })
  })

function valueGroup({ groups }: ObjectEntry, key: string): Group | undefined {
  return groups.find(
    ({ owner, certificates }) => owner.kind === 'value' && owner.key === key && certificates.length > 0,
  )
}

/** Finds the same certificate twice in one bundle. Reports each certificate once. */
const checkDuplicates: SnapshotCheck = ({ collection }) =>
  collection.groups
    .filter(({ certificates }) => certificates.length > 1)
    .flatMap((group) => {
      const first = new Map(group.certificates.toReversed().map((entry) => [entry.certificate, entry]))
      return group.certificates.flatMap((entry) => {
        const known = first.get(entry.certificate) ?? entry
        const message = `the same certificate as ${known.entry}`
        const fix = 'remove one of them'
        return known === entry ? [] : problemAt(entry, 'BUNDLE_MEMBER_DUPLICATE', { message, fix })
      })
    })

/** API servers sign service account tokens with sa.key and verify them with sa.pub. */
const checkServiceAccountKeys: SnapshotCheck = ({ collection }) => {
  const keys = collection.keys.flatMap((key) => {
    const place = kubeadmPlaceOf(key.group.origin)
    return place?.row.kind === 'service-account-key' ? [{ key, tree: place.tree, part: place.part }] : []
  })
  return keys.flatMap(({ key: signing, tree, part }) => {
    if (part !== 'key' || signing.publicKey === undefined) return []
    const taken = keys.filter((one) => one.part === 'public-key' && one.tree === tree).map(({ key }) => key)
    const [first] = taken
    const { sha256 } = signing.publicKey
    if (first === undefined || taken.some(({ publicKey }) => publicKey?.sha256 === sha256)) return []
    return problemAt(signing, 'KEY_MISMATCH', {
      message: `${placeText(first)} is not its public key: this API server rejects the service account tokens that it signs`,
      fix: 'copy both from a control-plane node whose pods work, or write sa.pub again and restart kube-apiserver',
      next: commandLine`openssl pkey -in ${signing.source} -pubout -out ${first.source}`,
    })
  })
}

/** Finds requests that their own key did not sign, and issued certificates with another key than the request. */
const checkRequests: SnapshotCheck = ({ collection }) => [
  ...collection.requests.flatMap((entry) => signatureProblem(entry) ?? []),
  ...collection.groups
    .filter(({ owner }) => owner.kind === 'issued')
    .flatMap((group) => {
      const leaf = leafOf(group)
      if (group.owner.kind !== 'issued' || group.owner.request === undefined || leaf === undefined) return []
      if (leaf.certificate.publicKey.sha256 === group.owner.request.request.publicKey.sha256) return []
      return problemAt(leaf, 'KEY_MISMATCH', {
        message: 'issued for another key than that of its request',
        fix: 'delete the request, create a new one, and check the signer',
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
      fix: 'create a new request with an ECDSA P-256 key',
      next: 'kcert csr create --help',
    })
  return problemAt(entry, 'REQUEST_SIGNATURE_WRONG', {
    message:
      verdict.reason === 'cannot-be-checked'
        ? uncheckedText(request)
        : 'not signed by the key in it, or with an algorithm that the API server does not support',
    fix: 'create a new request with its own private key',
  })
}

/** The CAs of kubeadm's folders. */
export const treeChecks: readonly SnapshotCheck[] = [checkTrees, checkKubelets]

/** Pairs in Secrets, bundles, requests and key files. */
export const objectChecks: readonly SnapshotCheck[] = [
  checkSecrets,
  checkServiceAccountKeys,
  checkDuplicates,
  checkRequests,
]
