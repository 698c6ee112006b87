import { orUndefined } from '../errors/caught.ts'
import { currentOf, type Material } from '../kubeconfig/kubeconfig.ts'
import { type OpenedKubeconfig, openKubeconfig } from '../kubeconfig/open.ts'
import type { Sha256 } from '../pki/node-access.ts'
import type { ParsedContent, Trust } from '../rotation/snapshot.ts'
import { type Certificate, readCertificates } from '../x509/certificate.ts'
import { isPrivateKeyLabel, isPublicKeyLabel, readPrivateKeyFile, readPublicKey } from '../x509/keys.ts'
import { looksLikePem, readPem } from '../x509/pem.ts'
import type { Certificates } from './certificates.ts'

/** The content of a file, with the files that a kubeconfig references instead of embedding them. */
export interface ReadContent {
  readonly contains: ParsedContent
  /** As written: relative to the kubeconfig's folder, or absolute. */
  readonly refersTo?: { readonly ca?: string; readonly client?: string }
}

const other: ReadContent = { contains: { kind: 'other' } }

/** Converts files of nodes into their snapshot form. Of a private key, only the public key is kept. */
export class FileReading {
  private readonly certificates: Certificates
  private readonly known = new Map<Sha256, ReadContent>()

  constructor(certificates: Certificates) {
    this.certificates = certificates
  }

  /** Returns the content of these bytes; equal bytes are read once. Never throws: unreadable content is `other`. */
  async read(content: Uint8Array, sha256: Sha256): Promise<ReadContent> {
    const before = this.known.get(sha256)
    if (before !== undefined) return before
    const read = await this.readNew(content).catch(() => other)
    this.known.set(sha256, read)
    return read
  }

  /** Returns the CAs of a PEM text, as in ConfigMaps and caBundles; none if it cannot be read. */
  trustOf(pem: Uint8Array | string | undefined): Trust {
    return pem === undefined ? [] : this.certificates.addAll(certificatesIn(Buffer.from(pem as string)))
  }

  private async readNew(content: Uint8Array): Promise<ReadContent> {
    if (looksLikePem(content)) return { contains: this.pem(content) }
    const opened = await openKubeconfig(content)
    return opened === undefined ? other : this.kubeconfig(opened)
  }

  private pem(content: Uint8Array): ParsedContent {
    const { blocks } = readPem(content)
    if (blocks.length > 0 && blocks.every(({ label }) => isPublicKeyLabel(label)))
      return { kind: 'public-keys', keys: blocks.map((block) => readPublicKey(block).sha256) }
    const hasKey = blocks.some(({ label }) => isPrivateKeyLabel(label))
    const certificates = this.certificates.addAll(certificatesIn(content))
    if (!hasKey) return certificates.length === 0 ? other.contains : { kind: 'certificates', certificates }
    const spki = readPrivateKeyFile(content).publicKey?.sha256
    if (spki === undefined) return other.contains
    return certificates.length === 0 ? { kind: 'key', spki } : { kind: 'pair', certificates, spki }
  }

  /** Uses only the current context, as the components that read the file do. */
  private kubeconfig({ kubeconfig, refusal }: OpenedKubeconfig): ReadContent {
    const { clusters, users } = kubeconfig
    const { cluster, user } = currentOf(kubeconfig)
    const caData = this.digestsOf(cluster?.certificateAuthority)
    const [client] = this.digestsOf(user?.clientCertificate)
    const others = [
      ...clusters.flatMap((one) => (one === cluster ? [] : this.digestsOf(one.certificateAuthority))),
      ...users.flatMap((one) => (one === user ? [] : this.digestsOf(one.clientCertificate).slice(0, 1))),
    ]
    const besides = [...new Set(others)]
    const refersTo = {
      ...(cluster?.certificateAuthority?.file && { ca: cluster.certificateAuthority.file }),
      ...(user?.clientCertificate?.file && { client: user.clientCertificate.file }),
    }
    return {
      contains: {
        kind: 'kubeconfig',
        caData,
        ...(client === undefined ? {} : { client }),
        ...(besides.length > 0 && { besides }),
        ...(refusal === undefined ? {} : { refusal }),
      },
      ...(Object.keys(refersTo).length > 0 && { refersTo }),
    }
  }

  private digestsOf(material: Material | undefined): Trust {
    return this.trustOf(material?.data)
  }
}

function certificatesIn(content: Uint8Array): Certificate[] {
  return orUndefined(() => readCertificates(content)) ?? []
}
