import { given } from '../errors/given.ts'
import { hostPort } from '../errors/host-port.ts'
import { KcertError } from '../errors/kcert-error.ts'
import {
  type KubeadmKubeconfig,
  type KubeadmLeaf,
  kubeadmKubeconfigs,
  kubeadmLeaves,
} from '../pki/kubeadm.ts'
import {
  bindingNotices,
  type KubeadmVersion,
  kubeadmVersion,
  organizationAt,
} from '../pki/kubeadm-organization.ts'
import { formatIp, parseIp } from '../x509/ip.ts'
import { isSubdomain } from '../x509/plain-names.ts'
import { isSpecialAddress, maskAt, parseCidr } from './approval/addresses.ts'
import { type KubeadmSettings, refuseNewerKeyType } from './kubeadm-settings.ts'
import { quoted } from './quoting.ts'
import { noAltNames, objectNameOf, type RequestSpec } from './request-spec.ts'
import { nodePrefix } from './signers.ts'

// The requests of a control plane with an external CA, as `kubeadm certs generate-csr` creates them.

export interface KubeadmRequest {
  /** The name in kubeadm: "apiserver", "etcd-peer", "admin.conf". */
  readonly row: string
  readonly spec: RequestSpec
  /** The path of the certificate in the pki folder, without extension; or the name of the kubeconfig. */
  readonly file: string
  readonly kubeconfig?: KubeadmKubeconfigSpec
}

export interface KubeadmKubeconfigSpec {
  readonly user: string
  readonly clusterName: string
  readonly server: string
}

type Row = KubeadmLeaf | KubeadmKubeconfig

const rows: readonly Row[] = [...kubeadmLeaves, ...kubeadmKubeconfigs]

/** The names of the rows, and "all". */
export const kubeadmRowNames: readonly string[] = ['all', ...rows.map(({ name }) => name)]

/** Returns the requests of one row of kubeadm's table, or of all. Throws KCERT_USAGE when a required setting is missing. */
export function kubeadmRequests(name: string, settings: KubeadmSettings): KubeadmRequest[] {
  const chosen = rows.filter((row) => name === 'all' || row.name === name)
  if (chosen.length === 0)
    throw usage(`kubeadm has no certificate ${quoted(name)}`, `kubeadm has ${kubeadmRowNames.join(', ')}`)
  return chosen.map((row) => {
    const user = row.commonName ?? nodeNameOf(row.name, settings)
    if (row.kind === 'leaf') return { row: row.name, spec: specOf(row, user, settings), file: row.file }
    const kubeconfig = {
      user: row.commonName ?? `${nodePrefix}${user}`,
      clusterName: settings.clusterName,
      server: serverOf(row, settings),
    }
    return { row: row.name, spec: specOf(row, kubeconfig.user, settings), file: row.name, kubeconfig }
  })
}

function specOf(row: Row, commonName: string, settings: KubeadmSettings): RequestSpec {
  const version = versionOf(settings)
  refuseNewerKeyType(settings.keyType, version)
  const organization = organizationAt(row, version)
  return {
    subject: { commonName, organization },
    altNames: altNamesOfRow(row, settings),
    keyType: settings.keyType,
    rsaHash: 'sha256',
    objectName: objectNameOf(row.name),
    purpose: row.usages.includes('serverAuth') ? 'server auth' : 'client auth',
    notices: [...(version === undefined ? assumptionOf(row) : []), ...bindingNotices(row, organization)],
  }
}

/**
 * Returns the version; undefined for a label without a minor version, such as "stable-1". Throws KCERT_USAGE for invalid text.
 */
function versionOf({ kubernetesVersion }: KubeadmSettings): KubeadmVersion | undefined {
  if (kubernetesVersion === undefined) return undefined
  const version = kubeadmVersion(kubernetesVersion)
  if (version !== undefined || /^(?:ci\/)?(?:stable|latest)(?:-1)?$/.test(kubernetesVersion)) return version
  throw usage(
    `${quoted(kubernetesVersion)} is not a Kubernetes version`,
    'the subjects and keys of the requests depend on it',
    '--kubernetes-version v1.36.1',
  )
}

/** Returns the assumption when the version is unknown, or when patch releases of one minor version differ. */
function assumptionOf({ name, olderOrganizations = [] }: Row): string[] {
  return olderOrganizations
    .filter(({ droppedIn }) => droppedIn.length > 1)
    .map(
      ({ organization, droppedIn }) =>
        `${name}: the Kubernetes version is unknown, so the request has no O=${organization}, as in kubeadm ${droppedIn.join(', ')} and later; for an older cluster, which needs that group, add --kubernetes-version VERSION`,
    )
}

function altNamesOfRow(row: Row, settings: KubeadmSettings): RequestSpec['altNames'] {
  const { apiServerCertSans, etcdServerCertSans, etcdPeerCertSans } = settings
  if (row.name === 'apiserver') return namesOf([...apiServerNames(settings), ...apiServerCertSans])
  if (row.name !== 'etcd-server' && row.name !== 'etcd-peer') return noAltNames
  const own = row.name === 'etcd-server' ? etcdServerCertSans : etcdPeerCertSans
  const [node, address] = [nodeNameOf(row.name, settings), advertiseAddressOf(row.name, settings)]
  return namesOf([node, 'localhost', address, '127.0.0.1', '::1', ...own])
}

function apiServerNames(settings: KubeadmSettings): string[] {
  const { dnsDomain, controlPlaneEndpoint } = settings
  return [
    nodeNameOf('apiserver', settings),
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    `kubernetes.default.svc.${dnsDomain}`,
    firstServiceAddress(settings),
    advertiseAddressOf('apiserver', settings),
    ...(controlPlaneEndpoint === undefined ? [] : [hostAndPort(controlPlaneEndpoint).host]),
  ]
}

// kubeadm sorts DNS names and keeps addresses in their order.
function namesOf(names: readonly string[]): RequestSpec['altNames'] {
  const [dns, ip] = [new Set<string>(), new Set<string>()]
  for (const name of names) {
    const bytes = parseIp(name)
    if (bytes !== undefined) ip.add(formatIp(bytes))
    else if (isSubdomain(name.replace(/^\*\./, ''))) dns.add(name)
    else
      throw usage(
        `the extra name ${quoted(name)} in kubeadm's configuration is not a name`,
        'certSANs are IP addresses and lower-case DNS names',
      )
  }
  return { ...noAltNames, dns: [...dns].sort(), ip: [...ip] }
}

function nodeNameOf(row: string, { nodeName }: KubeadmSettings): string {
  if (nodeName === undefined) throw missing(row, 'the name of the node', '--node-name')
  // kubeadm converts the node name in the same way.
  const name = nodeName.trim().toLowerCase()
  if (isSubdomain(name)) return name
  throw usage(
    `${quoted(nodeName)} is not a valid Node name`,
    'a Node name has only letters, digits, "-" and "."; correct it with --node-name',
  )
}

function advertiseAddressOf(row: string, { advertiseAddress }: KubeadmSettings): string {
  if (advertiseAddress === undefined)
    throw missing(row, 'the address of the API server on the node', '--advertise-address')
  if (parseIp(advertiseAddress) === undefined)
    throw usage(
      `${quoted(advertiseAddress)} is not an IP address of an API server`,
      '--advertise-address takes one address, such as 10.0.0.1',
    )
  if (!isSpecialAddress(advertiseAddress)) return advertiseAddress
  throw usage(
    `clients cannot reach an API server at ${advertiseAddress}`,
    'on the node itself, kubeadm uses the address of an interface instead; give it with --advertise-address',
  )
}

function usage(what: string, why: string, next?: string): KcertError {
  return new KcertError('KCERT_USAGE', what, { why, ...given({ next }) })
}

function missing(row: string, what: string, flag: string): KcertError {
  const why = `it is part of the request; give it with ${flag}, or kubeadm's configuration with --kubeadm-config`
  return usage(`${row} needs ${what}`, why)
}

function firstServiceAddress({ serviceSubnet }: KubeadmSettings): string {
  const ranges = serviceSubnet.split(',').map((range) => range.trim())
  const [cidr] = ranges.map((range) => parseCidr(range))
  const defect = ranges.map(subnetDefect).find((one) => one !== undefined)
  if (defect !== undefined || cidr === undefined)
    throw usage(
      `the range of services ${quoted(serviceSubnet)} ${defect}`,
      'kubeadm refuses it',
      '--service-subnet 10.96.0.0/12',
    )
  const { bytes, prefix } = cidr
  const last = bytes.length - 1
  return formatIp(bytes.map((byte, at) => (byte & maskAt(prefix, at)) | (at === last ? 1 : 0)))
}

/** Returns why kubeadm refuses a subnet: it requires 10 to 2^20 addresses (cmd/kubeadm/app/apis/kubeadm/validation). */
function subnetDefect(range: string): string | undefined {
  const cidr = range.includes('/') ? parseCidr(range) : undefined
  if (cidr === undefined) return 'is not a range of addresses such as 10.96.0.0/12'
  const bits = cidr.bytes.length * 8 - cidr.prefix
  if (bits < 4) return `has ${2 ** bits} addresses, and less than 10`
  return bits > 20 ? `is too large: its mask is /${cidr.bytes.length * 8 - 20} at least` : undefined
}

// The API server on the node itself for control plane components, the load balancer for others.
function serverOf(row: KubeadmKubeconfig, settings: KubeadmSettings): string {
  const { controlPlaneEndpoint, bindPort } = settings
  const isLocal = row.name === 'controller-manager.conf' || row.name === 'scheduler.conf'
  if (isLocal || controlPlaneEndpoint === undefined)
    return `https://${hostPort(advertiseAddressOf(row.name, settings), bindPort)}`
  const { host, port } = hostAndPort(controlPlaneEndpoint)
  return `https://${hostPort(host, port ?? bindPort)}`
}

/** "lb.example.com:6443", "10.0.0.1", "[fd00::1]:6443", "fd00::1" */
function hostAndPort(endpoint: string): { host: string; port?: string } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(endpoint) ?? []
  const isPort = port === undefined || (Number(port) >= 1 && Number(port) <= 65_535)
  const host = bracketed ?? plain ?? (parseIp(endpoint) === undefined ? undefined : endpoint)
  if (!isPort || host === undefined || (parseIp(host) === undefined && !isSubdomain(host)))
    throw usage(
      `the endpoint ${quoted(endpoint)} is not HOST or HOST:PORT`,
      'a host is an address or a lower-case DNS name, a port a number up to 65535',
    )
  return port === undefined ? { host } : { host, port }
}
