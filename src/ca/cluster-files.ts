import type { KeyObject } from 'node:crypto'
import { editKubeconfig } from '../kubeconfig/edit.ts'
import type { KubeconfigUser, Material } from '../kubeconfig/kubeconfig.ts'
import { openKubeconfig, unusableKubeconfig } from '../kubeconfig/open.ts'
import {
  type Certificate,
  certificateOfBlock,
  readCertificates,
  writeCertificates,
} from '../x509/certificate.ts'
import { isPrivateKeyLabel, readPrivateKey, readPrivateKeyFile } from '../x509/keys.ts'
import { writePrivateKey } from '../x509/new-key.ts'
import { isCertificateLabel, looksLikePem, readPem, writePem } from '../x509/pem.ts'
import { isKeyOf } from './authority.ts'

// The files of a cluster's nodes as what they hold: certificates, keys, and how each of them is put back with others in place.

export interface ClusterFile {
  readonly node: string
  readonly path: string
  readonly content: Uint8Array
}

/** What becomes of the certificates of a file, and of the keys beside them. */
export interface Replacement {
  certificate(one: Certificate): Certificate
  /** Returns the key that belongs to what takes the place of a leaf; undefined: the one that it has. */
  key?(leaf: Certificate): KeyObject | undefined
}

/** What a user of a kubeconfig shows. */
export interface ClientMaterial {
  readonly user: string
  /** False for one that shows a token, or something that it asks for. True for a key alone: its certificate is missing. */
  readonly needsCertificate: boolean
  /** Inline ones, leaf first. */
  readonly certificates: readonly Certificate[]
  /** Inline. */
  readonly key?: KeyObject
  /** As written. */
  readonly certificateFile?: string
  readonly keyFile?: string
}

export interface OpenedFile {
  readonly file: ClusterFile
  readonly kind: 'pem' | 'kubeconfig' | 'other'
  readonly certificates: readonly Certificate[]
  /** Of a PEM file. */
  readonly keys: readonly KeyObject[]
  /** Of a kubeconfig: its CA data. */
  readonly authorities: readonly Certificate[]
  readonly clients: readonly ClientMaterial[]
  /** Returns the text with everything replaced, in its order. */
  rewrite(replacement: Replacement): Promise<string>
}

/** Returns what a file holds. What is neither PEM nor a kubeconfig holds nothing. Throws for a kubeconfig that client-go refuses. */
export async function openFile(file: ClusterFile): Promise<OpenedFile> {
  if (looksLikePem(file.content)) return openPem(file)
  const text = Buffer.from(file.content).toString('utf8')
  const kubeconfig = await kubeconfigOf(file, text)
  const nothing = { certificates: [], keys: [], authorities: [], clients: [] }
  return kubeconfig ?? { file, kind: 'other', ...nothing, rewrite: async () => text }
}

function openPem(file: ClusterFile): OpenedFile {
  const { blocks } = readPem(file.content)
  const parts = blocks.map((block) => {
    const certificate = isCertificateLabel(block.label) ? parsed(() => certificateOfBlock(block)) : undefined
    const key = isPrivateKeyLabel(block.label) ? parsed(() => readPrivateKey(block).keyObject) : undefined
    return { block, certificate, key }
  })
  const certificates = parts.flatMap(({ certificate }) => certificate ?? [])
  return {
    file,
    kind: 'pem',
    certificates,
    keys: parts.flatMap(({ key }) => key ?? []),
    authorities: [],
    clients: [],
    rewrite: async (replacement) => {
      const key = certificates[0] && replacement.key?.(certificates[0])
      return parts
        .map(({ block, certificate, key: its }) => {
          if (certificate !== undefined)
            return writePem('CERTIFICATE', replacement.certificate(certificate).der)
          if (its !== undefined && key !== undefined) return writePrivateKey(key, 'kubernetes')
          return writePem(block.label, block.der)
        })
        .join('')
    },
  }
}

async function kubeconfigOf(file: ClusterFile, text: string): Promise<OpenedFile | undefined> {
  const opened = await openKubeconfig(file.content)
  if (opened === undefined) return undefined
  if (opened.refusal !== undefined) throw unusableKubeconfig(`${file.node}:${file.path}`, opened.refusal)
  const { clusters, users } = opened.kubeconfig
  const authorities = clusters.flatMap(({ name, certificateAuthority }) => {
    const data = certificateAuthority?.data
    return data === undefined ? [] : [{ name, certificates: certificatesOf(data) }]
  })
  const clients = users.map(clientOf)
  const inline = clients.filter(({ certificates }) => certificates.length > 0)
  return {
    file,
    kind: 'kubeconfig',
    certificates: [...authorities, ...inline].flatMap(({ certificates }) => certificates),
    keys: [],
    authorities: authorities.flatMap(({ certificates }) => certificates),
    clients,
    rewrite: (replacement) => {
      const pem = (certificates: readonly Certificate[]) => ({
        data: Buffer.from(writeCertificates(certificates.map((one) => replacement.certificate(one)))),
      })
      return editKubeconfig(text, {
        clusters: authorities.map(({ name, certificates }) => ({
          name,
          certificateAuthority: pem(certificates),
        })),
        users: inline.map(({ user, certificates }) => {
          const [leaf] = certificates
          const key = leaf && replacement.key?.(leaf)
          return {
            name: user,
            clientCertificate: pem(certificates),
            ...(key && { clientKey: { data: Buffer.from(writePrivateKey(key, 'kubernetes')) } }),
          }
        }),
      })
    },
  }
}

function clientOf({ name, clientCertificate, clientKey, credentials }: KubeconfigUser): ClientMaterial {
  const keyData = clientKey?.data
  const key = keyData && parsed(() => readPrivateKeyFile(keyData).keyObject)
  const fileOf = (material: Material | undefined) =>
    material?.data === undefined ? material?.file : undefined
  const certificateFile = fileOf(clientCertificate)
  const keyFile = fileOf(clientKey)
  return {
    user: name,
    needsCertificate:
      clientCertificate !== undefined || (clientKey !== undefined && credentials.length === 0),
    certificates: clientCertificate?.data === undefined ? [] : certificatesOf(clientCertificate.data),
    ...(key && { key }),
    ...(certificateFile !== undefined && { certificateFile }),
    ...(keyFile !== undefined && { keyFile }),
  }
}

/** CA certificates of one key, the one that lasts longest, and the key where it lies among the files. */
export interface KnownCa {
  readonly all: readonly Certificate[]
  readonly latest: Certificate
  readonly key?: KeyObject
}

/** Returns CAs by their keys, of those certificates that `isOne` says. */
export function casAmong(
  files: readonly OpenedFile[],
  isOne: (certificate: Certificate) => boolean,
): KnownCa[] {
  const keys = files.flatMap((file) => file.keys)
  const cas = files.flatMap(({ certificates }) => certificates).filter((one) => one.isCa && isOne(one))
  return [...Map.groupBy(cas, ({ publicKey }) => publicKey.sha256).values()].map((all) => {
    const latest = all.reduce((last, one) => (one.notAfterMs > last.notAfterMs ? one : last))
    const key = keys.find((one) => isKeyOf(one, latest))
    return { all, latest, ...(key && { key }) }
  })
}

function certificatesOf(data: Uint8Array): Certificate[] {
  return parsed(() => readCertificates(data)) ?? []
}

function parsed<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
