import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { type KubeadmLeaf, kubeadmCas, kubeadmKubeconfigs, kubeadmLeaves } from '../../src/pki/kubeadm.ts'
import {
  type CertificateDescription,
  type ExtensionsDescription,
  issueCertificate,
  keyIdentifierOf,
} from '../../src/x509/issuing.ts'
import { writePem } from '../../src/x509/pem.ts'

// The files of a node as kubeadm and the kubelet create them, from kcert's table of kubeadm's files. Nothing is written to disk
// here: a test passes the files to an inspection, or writes them.

export type Algorithm = 'RSA' | 'ECDSA'

export interface NodeFile {
  readonly bytes: Uint8Array
  readonly mode: number
  /** For a symbolic link. `bytes` and `mode` are then those of its target. */
  readonly linkTarget?: string
}

/** By path from the root of the node: "/etc/kubernetes/pki/ca.crt". */
export type NodeFiles = Map<string, NodeFile>

export interface TreeOptions {
  /** The creation time of all files. */
  readonly madeAt: Date
  readonly algorithm?: Algorithm
  readonly nodeName?: string
  readonly address?: string
  readonly etcd?: 'stacked' | 'external'
  /** Only the first control-plane node has one. */
  readonly hasSuperAdmin?: boolean
  /** Lifetime of leaf certificates; kubeadm's default is 365 days. */
  readonly leafDays?: number
  /** Lifetime of the kubelet's client certificate; kube-controller-manager's default is 365 days. */
  readonly kubeletHours?: number
}

/** A CA with its key, for tests that sign additional certificates. */
export interface TestCa {
  readonly certificate: Uint8Array
  readonly key: KeyObject
  readonly commonName: string
  readonly notBefore: Date
}

export interface NodeTree {
  readonly files: NodeFiles
  readonly cas: ReadonlyMap<'ca' | 'front-proxy-ca' | 'etcd-ca', TestCa>
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

const keys = new Map<string, KeyObject>()

/** Returns a private key. The same name gives the same key, because RSA keys cost half a second each. */
export function testKey(name: string, algorithm: Algorithm = 'ECDSA'): KeyObject {
  const id = `${algorithm} ${name}`
  let key = keys.get(id)
  if (key === undefined) {
    key =
      algorithm === 'RSA'
        ? generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
        : generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    keys.set(id, key)
  }
  return key
}

let serial = 0x1000

export interface LeafOptions extends ExtensionsDescription {
  readonly commonName: string
  readonly organization?: readonly string[]
  /** Replaces these two. */
  readonly subject?: CertificateDescription['subject']
  readonly key: KeyObject
  readonly notBefore: Date
  readonly notAfter: Date
}

/** Returns a certificate in DER that the CA signed, with kubeadm's key usage. */
export function signedBy(ca: TestCa, leaf: LeafOptions): Uint8Array {
  const { commonName, organization, key, notBefore, notAfter, ...extensions } = leaf
  return issueCertificate(
    {
      serialNumber: (serial++).toString(16).padStart(6, '0'),
      subject: { commonName, ...(organization && organization.length > 0 && { organization }) },
      issuer: { commonName: ca.commonName },
      notBefore,
      notAfter,
      publicKey: key,
      keyUsage: ['digitalSignature', 'keyEncipherment'],
      basicConstraints: { ca: false },
      authorityKeyId: keyIdentifierOf(ca.key),
      ...extensions,
    },
    ca.key,
  )
}

/** Returns a CA as kubeadm creates it: ten years, with the common name as a DNS name. */
export function testCa(commonName: string, key: KeyObject, notBefore: Date, days = 3650): TestCa {
  const certificate = issueCertificate(
    {
      serialNumber: (serial++).toString(16).padStart(6, '0'),
      subject: { commonName },
      issuer: { commonName },
      notBefore,
      notAfter: new Date(notBefore.getTime() + days * dayMs),
      publicKey: key,
      keyUsage: ['digitalSignature', 'keyEncipherment', 'keyCertSign'],
      basicConstraints: { ca: true },
      subjectKeyId: keyIdentifierOf(key),
      subjectAltNames: { dns: [commonName] },
    },
    key,
  )
  return { certificate, key, commonName, notBefore }
}

/** Returns the key in PEM as kubeadm writes it: PKCS#1 for RSA, SEC1 for ECDSA. */
export function keyPem(key: KeyObject): string {
  const type = key.asymmetricKeyType === 'rsa' ? 'pkcs1' : 'sec1'
  return key.export({ format: 'pem', type }) as string
}

export function certificatePem(...certificates: readonly Uint8Array[]): string {
  return certificates.map((der) => writePem('CERTIFICATE', der)).join('')
}

/** Returns all files of a healthy control-plane node, including its kubelet's. */
export function controlPlaneTree(options: TreeOptions): NodeTree {
  const { algorithm = 'ECDSA', madeAt, etcd = 'stacked', hasSuperAdmin = true } = options
  const made = new Date(madeAt.getTime() - 5 * 60_000)
  const files: NodeFiles = new Map()
  const cas = new Map(
    kubeadmCas.map((row) => [row.name, testCa(row.commonName, testKey(row.name, algorithm), made)] as const),
  )
  for (const row of kubeadmCas) {
    if (row.name === 'etcd-ca' && etcd === 'external') continue
    const ca = cas.get(row.name)!
    put(files, `pki/${row.file}.crt`, certificatePem(ca.certificate), 0o644)
    put(files, `pki/${row.file}.key`, keyPem(ca.key), 0o600)
  }
  for (const row of kubeadmLeaves) {
    if (row.signer === 'etcd-ca' && etcd === 'external') continue
    const key = testKey(row.name, algorithm)
    const certificate = signedBy(cas.get(row.signer)!, {
      commonName: row.commonName ?? nodeNameOf(options),
      organization: row.organization,
      key,
      notBefore: made,
      notAfter: leafEnd(options, made),
      extendedKeyUsage: row.usages,
      ...altNames(row, options),
    })
    put(files, `pki/${row.file}.crt`, certificatePem(certificate), 0o644)
    put(files, `pki/${row.file}.key`, keyPem(key), 0o600)
  }
  const serviceAccount = testKey('sa', algorithm)
  put(files, 'pki/sa.key', keyPem(serviceAccount), 0o600)
  put(
    files,
    'pki/sa.pub',
    createPublicKey(serviceAccount).export({ format: 'pem', type: 'spki' }) as string,
    0o600,
  )
  for (const row of kubeadmKubeconfigs) {
    if (row.name === 'kubelet.conf' || (row.name === 'super-admin.conf' && !hasSuperAdmin)) continue
    const key = testKey(row.name, algorithm)
    const certificate = signedBy(cas.get('ca')!, {
      commonName: row.commonName!,
      organization: row.organization,
      key,
      notBefore: made,
      notAfter: leafEnd(options, made),
      extendedKeyUsage: row.usages,
    })
    const user = `    client-certificate-data: ${base64(certificatePem(certificate))}\n    client-key-data: ${base64(keyPem(key))}\n`
    put(files, row.name, kubeconfigText(cas.get('ca')!, row.commonName!, user, options), 0o600)
  }
  put(
    files,
    'manifests/kube-apiserver.yaml',
    'apiVersion: v1\nkind: Pod\nmetadata:\n  name: kube-apiserver\nspec:\n  containers: []\n',
    0o600,
  )
  addKubelet(files, cas.get('ca')!, options)
  return { files, cas }
}

/** Returns all files of a healthy worker. */
export function workerTree(options: TreeOptions): NodeTree {
  const made = new Date(options.madeAt.getTime() - 5 * 60_000)
  const ca = testCa('kubernetes', testKey('ca', options.algorithm), made)
  const files: NodeFiles = new Map()
  put(files, 'pki/ca.crt', certificatePem(ca.certificate), 0o644)
  addKubelet(files, ca, options)
  return { files, cas: new Map([['ca', ca]]) }
}

/** Adds kubelet.conf and /var/lib/kubelet/pki: the pair in use, a replaced and expired pair, and a self-signed serving pair. */
function addKubelet(files: NodeFiles, ca: TestCa, options: TreeOptions): void {
  const { madeAt, kubeletHours = 365 * 24, algorithm = 'ECDSA' } = options
  const user = 'system:node:'.concat(nodeNameOf(options))
  const link = '/var/lib/kubelet/pki/kubelet-client-current.pem'
  put(
    files,
    'kubelet.conf',
    kubeconfigText(ca, user, `    client-certificate: ${link}\n    client-key: ${link}\n`, options),
    0o600,
  )
  const pair = (at: Date, name: string): NodeFile & { path: string } => {
    const key = testKey(name, 'ECDSA')
    const certificate = signedBy(ca, {
      commonName: user,
      organization: ['system:nodes'],
      key,
      keyUsage: ['digitalSignature'],
      notBefore: new Date(at.getTime() - 5 * 60_000),
      notAfter: new Date(at.getTime() + kubeletHours * hourMs - 5 * 60_000),
      extendedKeyUsage: ['clientAuth'],
    })
    const stamp = at.toISOString().slice(0, 19).replace(/[T:]/g, '-')
    return {
      path: `/var/lib/kubelet/pki/kubelet-client-${stamp}.pem`,
      bytes: Buffer.from(certificatePem(certificate) + keyPem(key)),
      mode: 0o600,
    }
  }
  const { path: oldPath, ...old } = pair(
    new Date(madeAt.getTime() - 2 * kubeletHours * hourMs),
    'kubelet-old',
  )
  const { path: currentPath, ...current } = pair(madeAt, 'kubelet')
  files.set(oldPath, old)
  files.set(currentPath, current)
  files.set(link, { ...current, linkTarget: currentPath })
  const selfMade = new Date(madeAt.getTime() - hourMs)
  const host = nodeNameOf(options)
  const servingCa = testCa(`${host}-ca@1790000000`, testKey('kubelet-serving-ca', algorithm), selfMade, 365)
  const servingKey = testKey('kubelet-serving', algorithm)
  const serving = signedBy(servingCa, {
    commonName: `${host}@1790000000`,
    key: servingKey,
    notBefore: selfMade,
    notAfter: new Date(selfMade.getTime() + 365 * dayMs),
    extendedKeyUsage: ['serverAuth'],
    subjectAltNames: { dns: [host] },
  })
  const folder = '/var/lib/kubelet/pki'
  files.set(`${folder}/kubelet.crt`, {
    bytes: Buffer.from(certificatePem(serving, servingCa.certificate)),
    mode: 0o644,
  })
  files.set(`${folder}/kubelet.key`, { bytes: Buffer.from(keyPem(servingKey)), mode: 0o600 })
}

function put(files: NodeFiles, path: string, text: string, mode: number): void {
  files.set(`/etc/kubernetes/${path}`, { bytes: Buffer.from(text), mode })
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

function nodeNameOf({ nodeName = 'cp1' }: TreeOptions): string {
  return nodeName
}

function leafEnd({ leafDays = 365 }: TreeOptions, made: Date): Date {
  return new Date(made.getTime() + leafDays * dayMs)
}

function altNames(row: KubeadmLeaf, options: TreeOptions): ExtensionsDescription {
  const node = nodeNameOf(options)
  const { address = '10.0.0.11' } = options
  if (row.name === 'apiserver') {
    const service = [
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      'kubernetes.default.svc.cluster.local',
    ]
    return { subjectAltNames: { dns: [node, ...service].sort(), ip: ['10.96.0.1', address] } }
  }
  if (row.name === 'etcd-server' || row.name === 'etcd-peer') {
    return { subjectAltNames: { dns: [node, 'localhost'].sort(), ip: [address, '127.0.0.1', '::1'] } }
  }
  return {}
}

function kubeconfigText(
  ca: TestCa,
  user: string,
  credentials: string,
  { address = '10.0.0.11' }: TreeOptions,
): string {
  return `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${base64(certificatePem(ca.certificate))}
    server: https://${address}:6443
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: ${user}
  name: ${user}@kubernetes
current-context: ${user}@kubernetes
kind: Config
preferences: {}
users:
- name: ${user}
  user:
${credentials}`
}
