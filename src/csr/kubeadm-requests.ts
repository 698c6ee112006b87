import { hostPort } from '../errors/host-port.ts'
import { KcertError } from '../errors/kcert-error.ts'
import {
  type KubeadmKubeconfig,
  type KubeadmLeaf,
  kubeadmKubeconfigs,
  kubeadmLeaves,
} from '../pki/kubeadm.ts'
import { type KubeadmVersion, kubeadmVersion, organizationAt } from '../pki/kubeadm-organization.ts'
import { formatIp, parseIp } from '../x509/ip.ts'
import { isSubdomain } from '../x509/plain-names.ts'
import { isSpecialAddress, maskAt, parseCidr } from './approval/addresses.ts'
import { type KubeadmSettings, refuseNewerKeyType } from './kubeadm-settings.ts'
import { quoted } from './quoting.ts'
import { noAltNames, objectNameOf, type RequestSpec } from './request-spec.ts'
import { nodePrefix } from './signers.ts'

// The requests of a control plane whose CA is elsewhere, as `kubeadm certs generate-csr` makes them.

export interface KubeadmRequest {
  /** As kubeadm calls it: "apiserver", "etcd-peer", "admin.conf". */
  readonly row: string
  readonly spec: RequestSpec
  /** Below the pki folder, without extension; of a certificate. */
  readonly file?: string
  /** Of a kubeconfig. */
  readonly kubeconfig?: KubeadmKubeconfigSpec
}

export interface KubeadmKubeconfigSpec {
  /** The file's name. */
  readonly file: string
  readonly user: string
  readonly clusterName: string
  readonly server: string
}

type Row = KubeadmLeaf | KubeadmKubeconfig

const rows: readonly Row[] = [...kubeadmLeaves, ...kubeadmKubeconfigs]

/** What may be asked for by name. */
export const kubeadmRowNames: readonly string[] = ['all', ...rows.map(({ name }) => name)]

/** Returns the requests of one row of kubeadm's table, or of all. Throws KCERT_USAGE when a setting is missing that a row needs. */
export function kubeadmRequests(name: string, settings: KubeadmSettings): KubeadmRequest[] {
  const chosen = rows.filter((row) => name === 'all' || row.name === name)
  if (chosen.length === 0)
    throw new KcertError('KCERT_USAGE', `kubeadm has no certificate ${quoted(name)}`, {
      why: `kubeadm has ${kubeadmRowNames.join(', ')}`,
    })
  return chosen.map((row) =>
    row.kind === 'leaf' ? leafRequest(row, settings) : kubeconfigRequest(row, settings),
  )
}

function leafRequest(row: KubeadmLeaf, settings: KubeadmSettings): KubeadmRequest {
  const commonName = row.commonName ?? nodeNameOf(row.name, settings)
  return { row: row.name, spec: specOf(row, commonName, settings), file: row.file }
}

function kubeconfigRequest(row: KubeadmKubeconfig, settings: KubeadmSettings): KubeadmRequest {
  const user = row.commonName ?? `${nodePrefix}${nodeNameOf(row.name, settings)}`
  const kubeconfig = {
    file: row.name,
    user,
    clusterName: settings.clusterName,
    server: serverOf(row, settings),
  }
  return { row: row.name, spec: specOf(row, user, settings), kubeconfig }
}

function specOf(row: Row, commonName: string, settings: KubeadmSettings): RequestSpec {
  const version = versionOf(settings)
  refuseNewerKeyType(settings.keyType, version)
  return {
    subject: { commonName, organization: organizationAt(row, version) },
    altNames: altNamesOfRow(row, settings),
    keyType: settings.keyType,
    rsaHash: 'sha256',
    objectName: objectNameOf(row.name),
    purpose: row.usages.includes('serverAuth') ? 'server auth' : 'client auth',
    notices: version === undefined ? assumptionOf(row) : [],
  }
}

/** A label that names no minor version, such as "stable-1", is no version here. Throws KCERT_USAGE for what is neither. */
function versionOf({ kubernetesVersion }: KubeadmSettings): KubeadmVersion | undefined {
  if (kubernetesVersion === undefined) return undefined
  const version = kubeadmVersion(kubernetesVersion)
  if (version !== undefined || /^(?:ci\/)?(?:stable|latest)(?:-1)?$/.test(kubernetesVersion)) return version
  throw new KcertError('KCERT_USAGE', `${quoted(kubernetesVersion)} is not a Kubernetes version`, {
    why: 'the subjects and keys of the requests depend on it',
    next: '--kubernetes-version v1.36.1',
  })
}

/** What is assumed where the version is not known and patch releases of one minor differ. */
function assumptionOf({ name, olderOrganizations = [] }: Row): string[] {
  return olderOrganizations
    .filter(({ droppedIn }) => droppedIn.length > 1)
    .map(
      ({ organization, droppedIn }) =>
        `${name}: the Kubernetes version is unknown, so the request has no O=${organization}, as in kubeadm ${droppedIn.join(', ')} and later; for an older cluster, which needs that group, add --kubernetes-version VERSION`,
    )
}

function altNamesOfRow(row: Row, settings: KubeadmSettings): RequestSpec['altNames'] {
  switch (row.name) {
    case 'apiserver':
      return namesOf([...apiServerNames(settings), ...settings.apiServerCertSans])
    case 'etcd-server':
      return namesOf([...etcdNames(row.name, settings), ...settings.etcdServerCertSans])
    case 'etcd-peer':
      return namesOf([...etcdNames(row.name, settings), ...settings.etcdPeerCertSans])
    default:
      return noAltNames
  }
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

function etcdNames(row: string, settings: KubeadmSettings): string[] {
  return [nodeNameOf(row, settings), 'localhost', advertiseAddressOf(row, settings), '127.0.0.1', '::1']
}

// kubeadm sorts DNS names and keeps addresses in their order.
function namesOf(names: readonly string[]): RequestSpec['altNames'] {
  const [dns, ip] = [new Set<string>(), new Set<string>()]
  for (const name of names) {
    const bytes = parseIp(name)
    if (bytes !== undefined) ip.add(formatIp(bytes))
    else if (isSubdomain(name.replace(/^\*\./, ''))) dns.add(name)
    else
      throw new KcertError(
        'KCERT_USAGE',
        `the extra name ${quoted(name)} in kubeadm's configuration is not a name`,
        {
          why: 'certSANs are IP addresses and lower-case DNS names',
        },
      )
  }
  return { ...noAltNames, dns: [...dns].sort(), ip: [...ip] }
}

function nodeNameOf(row: string, { nodeName }: KubeadmSettings): string {
  if (nodeName === undefined) throw missing(row, 'the name of the node', '--node-name')
  // As kubeadm does.
  const name = nodeName.trim().toLowerCase()
  if (isSubdomain(name)) return name
  throw new KcertError('KCERT_USAGE', `${quoted(nodeName)} is not a valid Node name`, {
    why: 'a Node name has only letters, digits, "-" and "."; correct it with --node-name',
  })
}

function advertiseAddressOf(row: string, { advertiseAddress }: KubeadmSettings): string {
  if (advertiseAddress === undefined)
    throw missing(row, 'the address of the API server on the node', '--advertise-address')
  const isAddress = parseIp(advertiseAddress) !== undefined
  if (isAddress && !isSpecialAddress(advertiseAddress)) return advertiseAddress
  throw new KcertError(
    'KCERT_USAGE',
    isAddress
      ? `clients cannot reach an API server at ${advertiseAddress}`
      : `${quoted(advertiseAddress)} is not an IP address of an API server`,
    {
      why: isAddress
        ? 'on the node itself, kubeadm uses the address of an interface instead; give it with --advertise-address'
        : '--advertise-address takes one address, such as 10.0.0.1',
    },
  )
}

function missing(row: string, what: string, flag: string): KcertError {
  return new KcertError('KCERT_USAGE', `${row} needs ${what}`, {
    why: `it is part of the request; give it with ${flag}, or kubeadm's configuration with --kubeadm-config`,
  })
}

function firstServiceAddress({ serviceSubnet }: KubeadmSettings): string {
  const ranges = serviceSubnet.split(',').map((range) => range.trim())
  const [cidr] = ranges.map((range) => parseCidr(range))
  const defect = ranges.map(subnetDefect).find((one) => one !== undefined)
  if (defect !== undefined || cidr === undefined)
    throw new KcertError('KCERT_USAGE', `the range of services ${quoted(serviceSubnet)} ${defect}`, {
      why: 'kubeadm refuses it',
      next: '--service-subnet 10.96.0.0/12',
    })
  const { bytes, prefix } = cidr
  const last = bytes.length - 1
  return formatIp(
    bytes.map((byte, at) => {
      const ofNetwork = byte & maskAt(prefix, at)
      return at === last ? ofNetwork | 1 : ofNetwork
    }),
  )
}

/** kubeadm wants ten addresses at least, and 2^20 at most (cmd/kubeadm/app/apis/kubeadm/validation). */
function subnetDefect(range: string): string | undefined {
  const cidr = range.includes('/') ? parseCidr(range) : undefined
  if (cidr === undefined) return 'is not a range of addresses such as 10.96.0.0/12'
  const bits = cidr.bytes.length * 8 - cidr.prefix
  if (bits < 4) return `has ${2 ** bits} addresses, and less than 10`
  return bits > 20 ? `is too large: its mask is /${cidr.bytes.length * 8 - 20} at least` : undefined
}

// Of the node itself for what runs on it, of the load balancer for the others.
function serverOf(row: KubeadmKubeconfig, settings: KubeadmSettings): string {
  const { controlPlaneEndpoint, bindPort } = settings
  const isLocal = row.name === 'controller-manager.conf' || row.name === 'scheduler.conf'
  if (isLocal || controlPlaneEndpoint === undefined)
    return url(advertiseAddressOf(row.name, settings), bindPort)
  const { host, port } = hostAndPort(controlPlaneEndpoint)
  return url(host, port ?? bindPort)
}

function url(host: string, port: string): string {
  return `https://${hostPort(host, port)}`
}

/** "lb.example.com:6443", "10.0.0.1", "[fd00::1]:6443", "fd00::1" */
function hostAndPort(endpoint: string): { host: string; port?: string } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(endpoint) ?? []
  const isPort = port === undefined || (Number(port) >= 1 && Number(port) <= 65_535)
  const host = bracketed ?? plain ?? (parseIp(endpoint) === undefined ? undefined : endpoint)
  if (!isPort || host === undefined || (parseIp(host) === undefined && !isSubdomain(host)))
    throw new KcertError('KCERT_USAGE', `the endpoint ${quoted(endpoint)} is not HOST or HOST:PORT`, {
      why: 'a host is an address or a lower-case DNS name, a port a number up to 65535',
    })
  return port === undefined ? { host } : { host, port }
}
