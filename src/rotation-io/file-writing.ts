import type { KeyObject } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import { reissueLeaf } from '../ca/successor.ts'
import { orUndefined } from '../errors/caught.ts'
import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { editKubeconfig } from '../kubeconfig/edit.ts'
import { currentOf } from '../kubeconfig/kubeconfig.ts'
import { usableKubeconfig } from '../kubeconfig/open.ts'
import { programOf } from '../pki/component-flags.ts'
import type { Expected, FileContent, KeyOf, NodeAccess, ReadFile } from '../pki/node-access.ts'
import { editStaticPod, readStaticPod } from '../pki/static-pod.ts'
import { editUnit, unitCommands } from '../pki/systemd-unit.ts'
import type { Content, WriteFile } from '../rotation/action.ts'
import type { Digest } from '../rotation/certificate-record.ts'
import { copyPath } from '../rotation/material.ts'
import { type PhaseTable, phaseCommand } from '../rotation/phase-table.ts'
import type { CaName } from '../rotation/target.ts'
import { textOf } from '../site/node-files.ts'
import type { Certificate } from '../x509/certificate.ts'
import { readCertificates, writeCertificates } from '../x509/certificate.ts'
import { isPrivateKeyLabel, readPrivateKeyFile } from '../x509/keys.ts'
import { replacementKey, writePrivateKey } from '../x509/new-key.ts'
import { readPem, writePem } from '../x509/pem.ts'
import { verifySignature } from '../x509/signature.ts'
import type { Parts } from './parts.ts'
import { bundleOf } from './rotation-cas.ts'

type ContentOf<Kind extends Content['kind']> = Extract<Content, { readonly kind: Kind }>

/** A file's new content, and the private key of its certificate if that has a file of its own. */
interface Prepared {
  readonly text: string
  readonly key?: KeyOf | undefined
}

/** The content to write, and a file to write before it in the same action. */
interface PreparedAction extends Prepared {
  readonly before?: Prepared & { readonly path: string }
}

/** Writes files on nodes: compares and copies the existing file first, and fills in secrets. */
export class FileWriting {
  private readonly parts: Omit<Parts, 'identity'>

  constructor(parts: Omit<Parts, 'identity'>) {
    this.parts = parts
  }

  async write(action: WriteFile): Promise<void> {
    const { node: name, path, content, mode, phase } = action
    const node = this.parts.planes.node(name)
    if (content.kind === 'copies-over') return this.parts.copies.putAside(name)
    if (content.kind === 'copies') return this.parts.copies.keepFiles(name, content.of, phase)
    const [now] = await node.readFiles([path])
    if (
      now === undefined ||
      now.found === 'unreadable' ||
      now.found === 'folder' ||
      now.found === 'special'
    ) {
      throw new KcertError('KCERT_NODE_REFUSED', `${path} on node "${name}" cannot be read`, {
        why: now?.found === 'unreadable' ? now.reason : 'it is a directory or a device',
      })
    }
    // This file may be the only source of the new content.
    if (now.found === 'file') await this.parts.site.reading.read(now.content, now.sha256)
    if (digestOf(now) !== action.replaces) {
      if (await this.isDone(now, content, node)) return
      throw drift(this.parts.table, action)
    }
    // A removed file in kcert's own folder is not copied: its content has another source, and it may be a private key.
    if (content.kind !== 'nothing' || ownFolderOf(path) === undefined)
      await this.parts.copies.keepFile(name, path, phase)
    const call = { timeoutMs: 60_000 }
    if (content.kind === 'nothing') {
      if (now.found === 'absent' && now.linkTarget === undefined) return
      await inDriftWords(this.parts.table, action, () =>
        node.removeFile(path, { holds: linkState(now), ...call }),
      )
      return this.removeEmptyFolder(node, path)
    }
    if (content.kind === 'link') {
      await inDriftWords(this.parts.table, action, () =>
        node.linkFile(path, content.to, { replaces: linkState(now), ...call }),
      )
      return
    }
    if (content.kind === 'copy') {
      const { digest: sha256, key: of } = content
      const key = of && {
        path: of.path,
        replaces: expectedOf(of.replaces),
        from: copyPath(of.digest),
        sha256: of.digest,
      }
      if (key !== undefined) await this.parts.copies.keepFile(name, key.path, phase)
      await makeFolderOf(node, path)
      await inDriftWords(this.parts.table, action, () =>
        node.copyFile(copyPath(sha256), path, {
          sha256,
          replaces: bytesOf(now),
          mode,
          ...given({ key }),
          ...call,
        }),
      )
      return
    }
    const { before, ...its } = await this.prepare(action, content, now, node)
    if (now.found === 'absent') await makeFolderOf(node, path)
    // All copies come before the first write, so that none delays the certificate after its key.
    for (const also of [before?.key?.path, before?.path, its.key?.path])
      if (also !== undefined) await this.parts.copies.keepFile(name, also, phase)
    if (before !== undefined)
      await node.writeFile(before.path, before.text, {
        replaces: 'anything',
        ...given({ key: before.key }),
        ...call,
      })
    await inDriftWords(this.parts.table, action, () =>
      node.writeFile(path, its.text, { replaces: bytesOf(now), mode, ...given({ key: its.key }), ...call }),
    )
  }

  private async prepare(
    action: WriteFile,
    content: Exclude<Content, { readonly kind: 'copies' | 'copies-over' | 'copy' | 'link' | 'nothing' }>,
    now: FileContent,
    node: NodeAccess,
  ): Promise<PreparedAction> {
    switch (content.kind) {
      case 'certificates':
        return { text: await this.bundle(content.certificates) }
      case 'ca-key': {
        const { key } = await this.parts.cas.pair(content.ca, content.generation, content.keyType)
        return { text: writePrivateKey(key, 'kubernetes') }
      }
      case 'service-account-key':
        return { text: writePrivateKey(await this.parts.keys.newKey(), 'kubernetes') }
      case 'public-keys':
        return { text: await this.parts.keys.publicKeys(content.keys) }
      case 'reissued':
        return this.reissued(content)
      case 'kubeconfig':
        return this.kubeconfig(content, present(this.parts.table, action, now), node)
      case 'definition':
        return {
          text: await this.definition(action, content, textOf(present(this.parts.table, action, now))),
        }
      case 'requested':
        return { text: await this.parts.requests.request(action.node, content) }
    }
  }

  private bundle(digests: readonly Digest[]): Promise<string> {
    return bundleOf(this.parts.cas, digests)
  }

  private async reissued(content: ContentOf<'reissued'>): Promise<Prepared> {
    const { ca, chain, leaf: replaced, newKey, keyType } = content
    const leaf = await this.parts.cas.certificate(replaced)
    const signingCa = await this.parts.cas.pair(ca, 'new')
    const textWith = async (key?: KeyObject): Promise<string> => {
      const reissued = reissueLeaf(leaf, signingCa, this.parts.cas.issuing(), key)
      return `${writeCertificates([reissued])}${await this.bundle(chain)}`
    }
    if (newKey === undefined) return { text: await textWith() }
    const key = replacementKey(leaf.publicKey, keyType)
    return {
      text: await textWith(key),
      key: { path: newKey, replaces: 'anything', content: writePrivateKey(key, 'kubernetes') },
    }
  }

  /**
   * Keeps certificates in the files that the kubeconfig references. The kubelet changes its own store; kcert writes other files.
   */
  private async kubeconfig(
    { caData, reissue, newKey, keyType }: Omit<ContentOf<'kubeconfig'>, 'kind'>,
    now: ReadFile,
    node: NodeAccess,
  ): Promise<PreparedAction> {
    const text = textOf(now)
    const { cluster, user } = await currentIn(now, node.name)
    const caFile = cluster?.certificateAuthority?.file
    const isThere = caFile !== undefined && (await this.contains(node, beside(now.path, caFile), caData))
    const clusters =
      cluster === undefined || isThere
        ? []
        : [{ name: cluster.name, certificateAuthority: { data: Buffer.from(await this.bundle(caData)) } }]
    const certificateFile = user?.clientCertificate?.file
    const isStore = /kubelet-client-current\.pem$/.test(certificateFile ?? '')
    if (reissue === undefined || user === undefined || isStore) {
      return { text: await editKubeconfig(text, { clusters }, now.path) }
    }
    const leaf = await this.parts.cas.certificate(reissue)
    const signingCa = await this.parts.cas.pair('cluster', 'new')
    const key = newKey ? replacementKey(leaf.publicKey, keyType) : undefined
    const reissued = writeCertificates([reissueLeaf(leaf, signingCa, this.parts.cas.issuing(), key)])
    const keyText = key === undefined ? undefined : writePrivateKey(key, 'kubernetes')
    const certificatePath = certificateFile === undefined ? undefined : beside(now.path, certificateFile)
    const keyPath = user.clientKey?.file === undefined ? undefined : beside(now.path, user.clientKey.file)
    const changed = {
      name: user.name,
      ...(certificatePath === undefined && { clientCertificate: { data: Buffer.from(reissued) } }),
      ...(keyText !== undefined && keyPath === undefined && { clientKey: { data: Buffer.from(keyText) } }),
    }
    const edited = await editKubeconfig(text, { clusters, users: [changed] }, now.path)
    if (certificatePath === keyPath && certificatePath !== undefined) {
      const both = `${reissued}${keyText ?? (await privateKeyIn(node, certificatePath))}`
      return { text: edited, before: { path: certificatePath, text: both } }
    }
    const itsKey =
      keyText === undefined || keyPath === undefined
        ? undefined
        : { path: keyPath, replaces: 'anything' as const, content: keyText }
    if (certificatePath === undefined) return { text: edited, key: itsKey }
    return { text: edited, before: { path: certificatePath, text: reissued, key: itsKey } }
  }

  private async contains(node: NodeAccess, path: string, certificates: readonly Digest[]): Promise<boolean> {
    const [file] = await node.readFiles([path])
    if (file?.found !== 'file') return false
    const { contains } = await this.parts.site.reading.read(file.content, file.sha256)
    return contains.kind === 'certificates' && contains.certificates.join() === certificates.join()
  }

  private async definition(
    { path }: WriteFile,
    { flags, annotations = {} }: ContentOf<'definition'>,
    text: string,
  ): Promise<string> {
    if (!/\.(ya?ml|json)$/.test(path)) return editUnit(text, programOfUnit(path, text), flags)
    const { containers, name } = await readStaticPod(text)
    const program = containers.find(
      (one) => one.program.startsWith('kube-') || one.program.startsWith('cloud-'),
    )
    return editStaticPod(text, program?.program ?? name, { flags, annotations }, path)
  }

  /** Returns whether the existing file shows that an action with a lost response was completed. */
  private async isDone(now: FileContent, content: Content, node: NodeAccess): Promise<boolean> {
    switch (content.kind) {
      case 'nothing':
        return now.found === 'absent'
      case 'link':
        return now.linkTarget === content.to
      case 'copy':
        return digestOf(now) === content.digest
      case 'certificates':
        return now.found === 'file' && textOf(now) === (await this.bundle(content.certificates))
      case 'ca-key': {
        if (now.found !== 'file') return false
        const { certificate } = await this.parts.cas.pair(content.ca, content.generation)
        return (
          orUndefined(() => readPrivateKeyFile(now.content).publicKey?.sha256) ===
          certificate.publicKey.sha256
        )
      }
      case 'service-account-key':
        return now.found === 'file' && (await this.parts.keys.isNewKey(now.content))
      case 'public-keys':
        return now.found === 'file' && textOf(now) === (await this.parts.keys.publicKeys(content.keys))
      case 'kubeconfig': {
        if (now.found !== 'file') return false
        const again = await this.kubeconfig({ caData: content.caData }, now, node)
        return (
          again.text === textOf(now) &&
          (content.reissue === undefined || this.isOfNewCa('cluster', await clientOf(now, node.name)))
        )
      }
      case 'reissued':
        return (
          now.found === 'file' &&
          this.isOfNewCa(
            content.ca,
            orUndefined(() => readCertificates(now.content)[0]),
          )
        )
      case 'definition':
        if (now.found !== 'file') return false
        return (
          (await this.definition({ path: now.path, node: node.name } as WriteFile, content, textOf(now))) ===
          textOf(now)
        )
      default:
        return false
    }
  }

  private async isOfNewCa(ca: CaName, certificate: Certificate | undefined): Promise<boolean> {
    if (certificate === undefined) return false
    const { certificate: signingCa } = await this.parts.cas.pair(ca, 'new')
    return verifySignature(certificate, signingCa.publicKey).ok
  }

  /** Removes kcert's own folder once it is empty. */
  private async removeEmptyFolder(node: NodeAccess, path: string): Promise<void> {
    const own = ownFolderOf(path)
    if (own === undefined) return
    for (const folder of [`${own}/old`, `${own}/new`, own]) {
      await node.removeFolder(folder).catch(() => {})
    }
  }
}

/** Returns kcert's own folder that contains the file, or undefined. */
function ownFolderOf(path: string): string | undefined {
  return /(.*\/kcert)(?:\/(?:old|new))?\/(?:(?:front-proxy-)?ca|sa)[^/]*$/.exec(path)?.[1]
}

function digestOf(file: FileContent): Digest | 'absent' {
  return file.found === 'file' ? file.sha256 : 'absent'
}

function bytesOf(file: FileContent): Expected {
  return expectedOf(digestOf(file))
}

function expectedOf(digest: Digest | 'absent'): Expected {
  return digest === 'absent' ? digest : { sha256: digest }
}

/** Returns the target of a link, or the digest of a file. */
function linkState(file: FileContent): Expected {
  return file.linkTarget === undefined ? bytesOf(file) : { linkTarget: file.linkTarget }
}

function present(table: PhaseTable, action: WriteFile, file: FileContent): ReadFile {
  if (file.found === 'file') return file
  throw drift(table, action)
}

async function clientOf(file: ReadFile, node: string): Promise<Certificate | undefined> {
  const data = (await currentIn(file, node)).user?.clientCertificate?.data
  return data === undefined ? undefined : readCertificates(data)[0]
}

async function currentIn({ path, content }: ReadFile, node: string): Promise<ReturnType<typeof currentOf>> {
  return currentOf((await usableKubeconfig(content, `${node}:${path}`)).kubeconfig)
}

/** Returns the private key, as PEM, of a file that also contains its certificate. Throws KCERT_X509_MALFORMED if it has none. */
async function privateKeyIn(node: NodeAccess, path: string): Promise<string> {
  const [file] = await node.readFiles([path])
  const { blocks } = readPem(file?.found === 'file' ? file.content : '')
  const key = blocks.find(({ label }) => isPrivateKeyLabel(label))
  if (key === undefined)
    throw new KcertError('KCERT_X509_MALFORMED', `${path} on node "${node.name}" has no private key`)
  return writePem(key.label, key.der)
}

/** Returns the path of a file that a kubeconfig references: absolute, or relative to the folder of the kubeconfig. */
export function beside(kubeconfig: string, file: string): string {
  return resolve(dirname(kubeconfig), file)
}

function programOfUnit(path: string, text: string): string {
  const programs = unitCommands([{ path, text }]).map(({ argv }) => programOf(argv))
  return programs.find((program) => /^(kube|cloud)/.test(program)) ?? programs[0] ?? path
}

async function makeFolderOf(node: NodeAccess, path: string): Promise<void> {
  const folder = path.slice(0, path.lastIndexOf('/'))
  // The file names in the pki/ folders may be public. The keys in kcert's own folder have mode 0600.
  await node.makeFolder(folder, { mode: 0o755 })
}

async function inDriftWords(
  table: PhaseTable,
  action: WriteFile,
  act: () => Promise<unknown>,
): Promise<void> {
  try {
    await act()
  } catch (error) {
    if (error instanceof KcertError && error.code === 'KCERT_NODE_FILE_CHANGED')
      throw drift(table, action, error)
    throw error
  }
}

function drift(table: PhaseTable, { node, path, phase }: WriteFile, cause?: unknown): KcertError {
  return new KcertError('KCERT_ROTATION_DRIFT', `${node}:${path} changed since kcert planned`, {
    why: 'another program or person changed it; check the file first',
    next: phaseCommand(table, phase),
    cause,
  })
}
