import { KcertError } from '../errors/kcert-error.ts'
import {
  type KubeadmKubeconfig,
  type KubeadmLeaf,
  kubeadmKubeconfigs,
  kubeadmLeaves,
  type Usage,
} from '../pki/kubeadm.ts'
import { nodeUserPrefix } from '../pki/kubelet.ts'
import { isSubdomain } from '../x509/plain-names.ts'
import type { CertificateRequest } from '../x509/request.ts'
import { quoted } from '../x509/strings.ts'
import { newRequestAdvice } from './certificate-authority.ts'

// The requests of a control plane with an external CA, with the file names of `kubeadm certs generate-csr` and `kcert csr create
// --kubeadm`: which certificate of kubeadm each is for, and whether it requests exactly that certificate.

/** A certificate of kubeadm's table. */
export type KubeadmRow = KubeadmLeaf | KubeadmKubeconfig

export const signedRows: readonly KubeadmRow[] = [...kubeadmLeaves, ...kubeadmKubeconfigs]

/** Returns the path of a row's files without ".csr" or ".crt", in the pki folder or the folder of kubeconfigs: "etcd/server". */
export function rowPath(row: KubeadmRow): string {
  return row.kind === 'leaf' ? row.file : row.name
}

/** Returns the row whose request has this path ("a/etcd/server.csr"); undefined for another name. */
export function rowOfRequest(path: string): KubeadmRow | undefined {
  return signedRows.find((row) => `/${path}`.endsWith(`/${rowPath(row)}.csr`))
}

/** Checks that a request asks for the certificate of a row. Throws KCERT_REQUEST_REFUSED; `place` is its file. */
export function checkRow(row: KubeadmRow, request: CertificateRequest, place: string): void {
  const fault = subjectFault(row, request) ?? sanFault(row, request) ?? usageFault(row.usages, request)
  if (fault === undefined) return
  throw new KcertError('KCERT_REQUEST_REFUSED', `${place} is not a request for kubeadm's ${row.name}`, {
    why: fault,
    next: newRequestAdvice,
  })
}

function subjectFault(row: KubeadmRow, { subject }: CertificateRequest): string | undefined {
  const { commonName = '', organization } = subject
  if (row.commonName !== undefined && commonName !== row.commonName)
    return `its common name is ${quoted(commonName)}, not ${quoted(row.commonName)}`
  const prefix = row.kind === 'kubeconfig' ? nodeUserPrefix : ''
  const isOfNode = commonName.startsWith(prefix) && isSubdomain(commonName.slice(prefix.length))
  if (row.commonName === undefined && !isOfNode)
    return `its common name is ${quoted(commonName)}, not ${prefix}NODE with the name of a node`
  const older = (row.olderOrganizations ?? []).map((one) => [one.organization])
  if ([row.organization, ...older].some((one) => isSame(one, organization))) return undefined
  return `its organizations are ${listOf(organization)}, not ${listOf(row.organization)}`
}

/** kubeadm writes SANs only for servers, and clients of a server without SANs reject it. */
function sanFault({ usages }: KubeadmRow, { subjectAltNames }: CertificateRequest): string | undefined {
  const { dns, ip, email, uri } = subjectAltNames
  const names = [...dns, ...ip]
  const others = [...email, ...uri]
  if (!usages.includes('serverAuth'))
    return names.length + others.length === 0
      ? undefined
      : `it has SANs, and a client certificate needs none: ${listOf([...names, ...others])}`
  if (names.length === 0) return 'it has no SANs, and clients check server names only there'
  return others.length === 0
    ? undefined
    : `it has SANs that are not DNS names or IP addresses: ${listOf(others)}`
}

function usageFault(usages: readonly Usage[], request: CertificateRequest): string | undefined {
  if (request.basicConstraints?.ca) return 'it requests a CA certificate'
  if (request.keyUsage?.includes('keyCertSign')) return 'it requests the key usage keyCertSign'
  const others = request.extendedKeyUsage.filter((usage) => !usages.some((one) => one === usage))
  return others.length === 0 ? undefined : `it requests the extended key usage ${others.join(', ')}`
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((one) => others.includes(one))
}

function listOf(values: readonly string[]): string {
  return values.length === 0 ? 'none' : values.map(quoted).join(', ')
}
