import { isUtf8 } from 'node:buffer'
import type { KeyObject } from 'node:crypto'
import { orUndefined } from '../errors/caught.ts'
import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { editKubeconfig } from '../kubeconfig/edit.ts'
import type { KubeconfigUser, Material } from '../kubeconfig/kubeconfig.ts'
import { openKubeconfig, unusableKubeconfig } from '../kubeconfig/open.ts'
import { type Certificate, certificateOfBlock, readCertificates } from '../x509/certificate.ts'
import { isPrivateKeyLabel, readPrivateKey, readPrivateKeyFile } from '../x509/keys.ts'
import { writePrivateKey } from '../x509/new-key.ts'
import { isCertificateLabel, looksLikePem, readPem, utf8Of, writePem } from '../x509/pem.ts'
import { isKeyOf } from './certificate-authority.ts'

// The content of the files on a cluster's nodes: certificates, keys, and how to write each file again with others in their place.

export interface ClusterFile {
  readonly node: string
  readonly path: string
  readonly content: Uint8Array
}

/** The replacements for the certificates and keys of a file. */
export interface Replacement {
  certificate(one: Certificate): Certificate
  /** Returns the key for the replacement of a leaf; undefined: the existing key. */
  key?(leaf: Certificate): KeyObject | undefined
}

/** The credentials of a kubeconfig user. */
export interface ClientMaterial {
  readonly user: string
  /** False for a token or an exec plugin. True for a key without a certificate, which is then missing. */
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
  readonly certificates: readonly Certificate[]
  /** Of a PEM file. */
  readonly keys: readonly KeyObject[]
  /** Of a kubeconfig: its CA data. */
  readonly cas: readonly Certificate[]
  readonly clients: readonly ClientMaterial[]
  /** Returns the text with other certificates and keys, and every other byte unchanged. Throws KCERT_EDIT_REFUSED. */
  rewrite(replacement: Replacement): Promise<string>
}

/**
 * Returns the content of a file. A file that is neither PEM nor a kubeconfig is empty. Throws for a kubeconfig that client-go
 * rejects.
 */
export async function openFile(file: ClusterFile): Promise<OpenedFile> {
  if (looksLikePem(file.content)) return openPem(file)
  const text = Buffer.from(file.content).toString('utf8')
  const kubeconfig = await kubeconfigOf(file, text)
  return kubeconfig ?? { file, certificates: [], keys: [], cas: [], clients: [], rewrite: async () => text }
}

function openPem(file: ClusterFile): OpenedFile {
  const { certificates, keys, replaced } = pemOf(file.content)
  return {
    file,
    certificates,
    keys,
    cas: [],
    clients: [],
    rewrite: async (replacement) => {
      const bytes = replaced(replacement)
      if (bytes === undefined) return Buffer.from(file.content).toString('utf8')
      if (isUtf8(bytes)) return bytes.toString('utf8')
      throw new KcertError('KCERT_EDIT_REFUSED', `${file.node}:${file.path} has bytes that are not UTF-8`, {
        why: `they would not survive the replacement of the certificates; remove them on node ${file.node}`,
        next: commandLine`kcert inspect ${file.path}`,
      })
    },
  }
}

/**
 * Returns the content of a PEM text, and the text with replacements, undefined when nothing changes. Every other byte stays:
 * a damaged block may be a CA that is still needed, and headers are needed to decrypt a key.
 */
function pemOf(content: Uint8Array) {
  const bytes = utf8Of(content)
  const parts = readPem(bytes).blocks.map((block) => ({
    block,
    certificate: isCertificateLabel(block.label) ? orUndefined(() => certificateOfBlock(block)) : undefined,
    key: isPrivateKeyLabel(block.label) ? orUndefined(() => readPrivateKey(block).keyObject) : undefined,
  }))
  const certificates = parts.flatMap(({ certificate }) => certificate ?? [])
  const replaced = (replacement: Replacement): Buffer | undefined => {
    const newKey = certificates[0] && replacement.key?.(certificates[0])
    const pieces: Uint8Array[] = []
    let from = 0
    for (const { block, certificate, key } of parts) {
      const now = certificate && replacement.certificate(certificate)
      const isOther = now !== certificate || (key !== undefined && newKey !== undefined)
      if (!isOther) continue
      const text = now ? writePem('CERTIFICATE', now.der) : newKey && writePrivateKey(newKey, 'kubernetes')
      pieces.push(bytes.subarray(from, block.offset), Buffer.from(text?.trimEnd() ?? ''))
      const end = `-----END ${block.label}-----`
      from = bytes.indexOf(end, block.offset) + end.length
    }
    return from === 0 ? undefined : Buffer.concat([...pieces, bytes.subarray(from)])
  }
  return { certificates, keys: parts.flatMap(({ key }) => key ?? []), replaced }
}

async function kubeconfigOf(file: ClusterFile, text: string): Promise<OpenedFile | undefined> {
  const opened = await openKubeconfig(file.content)
  if (opened === undefined) return undefined
  if (opened.refusal !== undefined) throw unusableKubeconfig(`${file.node}:${file.path}`, opened.refusal)
  const { clusters, users } = opened.kubeconfig
  const cas = clusters.flatMap(({ name, certificateAuthority: { data } = {} }) =>
    data === undefined ? [] : [{ name, pem: pemOf(data) }],
  )
  const clients = users.map((user) => ({ ...clientOf(user), data: user.clientCertificate?.data }))
  const inline = clients.filter(({ certificates }) => certificates.length > 0)
  const trusted = cas.flatMap(({ pem }) => pem.certificates)
  return {
    file,
    certificates: [...trusted, ...inline.flatMap(({ certificates }) => certificates)],
    keys: [],
    cas: trusted,
    clients,
    rewrite: (replacement) =>
      editKubeconfig(text, {
        clusters: cas.flatMap(({ name, pem }) => {
          const data = pem.replaced(replacement)
          return data === undefined ? [] : [{ name, certificateAuthority: { data } }]
        }),
        users: inline.map(({ user, certificates: [leaf], data: pem }) => {
          const data = pem && pemOf(pem).replaced(replacement)
          const key = leaf && replacement.key?.(leaf)
          return {
            name: user,
            ...(data && { clientCertificate: { data } }),
            ...(key && { clientKey: { data: Buffer.from(writePrivateKey(key, 'kubernetes')) } }),
          }
        }),
      }),
  }
}

function clientOf({ name, clientCertificate, clientKey, credentials }: KubeconfigUser): ClientMaterial {
  const keyData = clientKey?.data
  const key = keyData && orUndefined(() => readPrivateKeyFile(keyData).keyObject)
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
    ...given({ certificateFile, keyFile }),
  }
}

/** CA certificates with one key: the one that expires last, and the private key if it is in the files. */
export interface KnownCa {
  readonly all: readonly Certificate[]
  readonly latest: Certificate
  readonly key?: KeyObject
}

/** Returns CAs by their keys, from the certificates that `isOne` accepts. */
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
  return orUndefined(() => readCertificates(data)) ?? []
}
