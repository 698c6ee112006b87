import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Digest } from './certificate-record.ts'
import { changesIn, isOfFinished, type JournalEntry } from './journal.ts'
import { folderOn, keyPathFor } from './material.ts'
import type { PhaseTable } from './phase-table.ts'
import {
  apiServerOn,
  type ComponentSnapshot,
  fileAt,
  type Observed,
  onNode,
  type ParsedContent,
} from './snapshot.ts'

// The old CA's key after its rotation. The key stays in the copies on the nodes until the operator archives or destroys it. kcert
// never does either without a command.

/** A CA whose key can be archived or destroyed. */
export interface OldCa {
  readonly ca: string
  readonly subject: string
  /** Digest of the CA certificate. */
  readonly digest: Digest
  readonly spki: Digest
}

/** A file in kcert's own folders on a node. */
export interface KeyFile {
  readonly path: string
  readonly digest: Digest
  readonly sizeBytes: number
  /** Digest of the key; absent if the content is already overwritten and only the file remains. */
  readonly spki?: Digest
}

/** Where a node may store the old CA's key. */
export interface KeyPlaces {
  /** kcert's own folders; their subfolders are searched too. */
  readonly folders: readonly string[]
  /** Paths of keys next to the CAs of components and kubelets. A key there is in use unless it is encrypted. */
  readonly besideCas: readonly string[]
}

export interface FoundKeys {
  /** Files in the folders that contain one of the keys, or contained one before they were overwritten. */
  readonly keys: readonly KeyFile[]
  /** Paths of all keys that kcert cannot identify without a password. */
  readonly encrypted: readonly string[]
}

/** Finds, reads and destroys files with an old CA's key on nodes. */
export interface OldKeyFiles {
  /** Searches for these keys and for encrypted ones. Throws KCERT_NODE_UNREACHABLE. */
  find(node: string, places: KeyPlaces, spkis: ReadonlySet<Digest>): Promise<FoundKeys>
  /** Returns the bytes of a key. Throws KCERT_NODE_FILE_CHANGED when the file changed since `find`. */
  read(node: string, file: KeyFile): Promise<Uint8Array>
  /** Overwrites the file in place, then removes it. Succeeds if the file is already gone. Throws the same errors as `read`. */
  destroy(node: string, file: KeyFile): Promise<void>
  /** Returns the PEM of a certificate that was read during the search, or undefined when none has this digest. */
  certificate(digest: Digest): string | undefined
  /** Returns the digest of the key in these bytes, or undefined when they contain no key. */
  spkiOf(content: Uint8Array): Digest | undefined
}

/** The operator's folder for archived keys. */
export interface KeyArchive {
  readonly folder: string
  /** Writes a new file and returns its content. Never overwrites an existing file. */
  keep(name: string, content: Uint8Array | string, mode: number): Promise<Uint8Array>
}

/** kcert's own folder on every node. */
const ownFolder = '/var/lib/kcert'

/** Returns the old CAs of the rotation in the journal. Throws KCERT_ROTATION_REFUSED if the rotation is not finished. */
export function oldCasOf(history: readonly JournalEntry[], table: PhaseTable): readonly OldCa[] {
  const changes = changesIn(history, table)
  if (!isOfFinished(history, table) || changes.length === 0) throw notFinished(history)
  for (const { ca, oldCa, newCa } of changes)
    if (oldCa.spki === newCa.spki)
      throw new KcertError('KCERT_ROTATION_REFUSED', `the new ${ca} CA has the key of the old one`, {
        why: 'the key in use is the only key',
        next: 'kcert rotate-ca --phase 1',
      })
  return changes.map(({ ca, oldCa: { subject, digest, spki } }) => ({ ca, subject, digest, spki }))
}

/** Throws KCERT_ROTATION_REFUSED when a component uses one of these keys, or when no API server was observed. */
export function checkNotInUse(observed: Observed<'components' | 'files'>, olds: readonly OldCa[]): void {
  const uses = usedKeys(observed)
  if (uses.size === 0) {
    throw new KcertError('KCERT_NODE_UNREACHABLE', "no API server's CA could be read", {
      why: 'kcert checks the CA files of the API servers to find out whether a key is still in use; restore a control-plane node first',
      next: 'kubectl get nodes',
    })
  }
  for (const { ca, spki } of olds) {
    const where = uses.get(spki)
    if (where === undefined) continue
    const why = 'kcert neither archives nor destroys a key that is in use'
    const next = 'kcert rotate-ca status'
    throw new KcertError('KCERT_ROTATION_REFUSED', `the old key of the ${ca} CA is in use: ${where}`, {
      why,
      next,
    })
  }
}

const caFlags = [
  'client-ca-file',
  'requestheader-client-ca-file',
  'etcd-cafile',
  'root-ca-file',
  'cluster-signing-cert-file',
] as const

/** Returns where each CA key is in use: a component trusts its CA, or signs with it. */
function usedKeys(observed: Observed<'components' | 'files'>): ReadonlyMap<Digest, string> {
  const uses = new Map<Digest, string>()
  for (const component of observed.components) {
    const { trusted, keys } = caPathsOf(component)
    for (const path of [...trusted, ...keys]) {
      const used = spkisIn(fileAt(observed, component.node, path)?.contains, observed)
      for (const spki of used) uses.set(spki, `${component.id} reads ${path}`)
    }
  }
  return uses
}

/** Returns the CA files of a component, and the paths where their keys may be. */
function caPathsOf({ flags }: ComponentSnapshot) {
  const trusted = caFlags.flatMap((flag) => flags[flag] ?? [])
  return { trusted, keys: [flags['cluster-signing-key-file'] ?? [], trusted.map(keyPathFor)].flat() }
}

function spkisIn(content: ParsedContent | undefined, { certificates }: Observed<'files'>): readonly Digest[] {
  const own = content?.kind === 'key' || content?.kind === 'pair' ? [content.spki] : []
  const its = content?.kind === 'certificates' || content?.kind === 'pair' ? content.certificates : []
  return [...own, ...its.flatMap((digest) => certificates.get(digest)?.spki ?? [])]
}

/** Returns where a node may store the old CA's key. */
export function keyPlaces(observed: Observed<'components' | 'kubelets'>, node: string): KeyPlaces {
  const ofComponents = onNode(observed.components, node).flatMap((component) => caPathsOf(component).keys)
  const ofKubelets = onNode(observed.kubelets, node).map(({ clientCaFile }) => keyPathFor(clientCaFile))
  return {
    folders: apiServerOn(observed, node) ? [ownFolder, folderOn(observed, node)] : [ownFolder],
    besideCas: [...new Set([...ofComponents, ...ofKubelets])],
  }
}

/** Returns why an encrypted key is skipped, and the command that identifies it with its password. */
export function whyEncrypted(path: string, olds: readonly OldCa[]) {
  const spkis = olds.map(({ spki }) => spki).join(' or ')
  return {
    why: [
      "the key is encrypted, so kcert cannot tell whether it is the old CA's",
      `Run the next command on that node; if it prints ${spkis}, move the key to a safe place`,
      commandLine`Or destroy it: shred -u ${path}`,
    ].join('. '),
    next: commandLine`openssl pkey -in ${path} -pubout -outform DER | sha256sum`,
  }
}

/** Returns the file names of a CA's key and certificate in the archive. */
export function archiveNames({ ca, spki }: OldCa): { readonly key: string; readonly certificate: string } {
  const name = `${ca === 'cluster' ? 'ca' : `${ca}-ca`}-old-${spki.slice(0, 12)}`
  return { key: `${name}.key`, certificate: `${name}.crt` }
}

function notFinished(history: readonly JournalEntry[]): KcertError {
  if (history.length === 0) {
    return new KcertError('KCERT_ROTATION_REFUSED', 'no journal of a finished rotation', {
      why: 'the journal identifies the old key; neither this machine nor the cluster has it (pass --journal FILE)',
      next: 'kcert rotate-ca status',
    })
  }
  return new KcertError('KCERT_ROTATION_REFUSED', 'the rotation is not finished', {
    why: "a rollback needs the old CA's key until phase 12 is complete",
    next: commandLine`kcert rotate-ca`,
  })
}
