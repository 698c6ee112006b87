import { commandLine, fixed } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Digest } from './certificate-record.ts'
import { isOfFinished, type JournalEntry, rememberedIn } from './journal.ts'
import { copyPath, folderOn, keyPathFor } from './material.ts'
import type { PhaseTable } from './phase-table.ts'
import { keyPaths } from './service-account-key/keys.ts'
import {
  apiServerOn,
  type ComponentSnapshot,
  fileAt,
  fileKey,
  type Observed,
  onNode,
  type ParsedContent,
} from './snapshot.ts'

// The keys of the old CAs, or the old service account key, after the rotation. They stay in the copies on the nodes until the operator
// archives or destroys them. kcert never does either without a command.

/** A replaced key, which can be archived or destroyed. */
export interface OldKey {
  readonly spki: Digest
  /** The CA that it belonged to; absent for the service account key. */
  readonly ca?: {
    readonly name: string
    readonly subject: string
    /** Digest of the CA certificate. */
    readonly digest: Digest
  }
}

/** A file in kcert's own folders on a node. */
export interface KeyFile {
  readonly path: string
  readonly digest: Digest
  readonly sizeBytes: number
  /** Digest of the key; absent if the content is already overwritten and only the file remains. */
  readonly spki?: Digest
}

/** Where a node may store an old key. */
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

/** Finds, reads and destroys files with an old key on nodes. */
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

/** Returns the keys that the rotation in the journal replaces. */
export function oldKeysIn(history: readonly JournalEntry[], table: PhaseTable): readonly OldKey[] {
  const { changes, key } = rememberedIn(history, table)
  const ofCas = changes.map(({ ca: name, oldCa: { subject, digest, spki } }) => {
    return { spki, ca: { name, subject, digest } }
  })
  return key === undefined ? ofCas : [...ofCas, { spki: key.oldKey }]
}

/** Returns the keys that the finished rotation in the journal replaced. Throws KCERT_ROTATION_REFUSED if it is not finished. */
export function retirableKeys(history: readonly JournalEntry[], table: PhaseTable): readonly OldKey[] {
  const olds = oldKeysIn(history, table)
  if (!isOfFinished(history, table) || olds.length === 0) throw notFinished(history, table)
  const { changes, key } = rememberedIn(history, table)
  const news = new Set([...changes.map(({ newCa }) => newCa.spki), key?.newKey])
  for (const old of olds)
    if (news.has(old.spki))
      throw new KcertError('KCERT_ROTATION_REFUSED', `the ${nameOfKey(old)} is also the new key`, {
        why: 'the key in use is the only key',
        next: commandLine`${fixed(table.command)} --phase 1`,
      })
  return olds
}

/** Returns which key it is: "key of the old cluster CA" or "old service account key". */
export function nameOfKey({ ca }: Pick<OldKey, 'ca'>): string {
  return ca === undefined ? 'old service account key' : `key of the old ${ca.name} CA`
}

/**
 * Throws KCERT_ROTATION_REFUSED when a component uses one of these keys, and KCERT_NODE_UNREACHABLE when it is not known which keys the
 * API servers use.
 */
export function checkNotInUse(
  observed: Observed<'components' | 'files'>,
  olds: readonly OldKey[],
  { command, replaces }: PhaseTable,
): void {
  const ofCas = usesOf(observed, (component) => Object.values(caPathsOf(component)).flat())
  const ofTokens = usesOf(observed, keyPaths)
  const { found, unread } = replaces === 'CA' ? { ...ofCas, unread: [] } : ofTokens
  if (found.size === 0 || unread.length > 0) {
    const what = replaces === 'CA' ? 'CA' : 'service account key'
    throw new KcertError('KCERT_NODE_UNREACHABLE', unread[0] ?? `no API server's ${what} could be read`, {
      why: `kcert checks the ${what} files of the API servers to find out whether a key is still in use; restore a control-plane node first`,
      next: 'kubectl get nodes',
    })
  }
  for (const old of olds) {
    const where = ofCas.found.get(old.spki) ?? ofTokens.found.get(old.spki)
    if (where === undefined) continue
    throw new KcertError('KCERT_ROTATION_REFUSED', `the ${nameOfKey(old)} is in use: ${where}`, {
      why: 'kcert neither archives nor destroys a key that is in use',
      next: commandLine`${fixed(command)} status`,
    })
  }
}

/** Throws KCERT_ROTATION_REFUSED when one of these files is a copy that the rollback of a later rotation needs. */
export function checkNotForRollback(
  { copies }: Observed<'copies'>,
  files: readonly { readonly node: string; readonly path: string }[],
  { command }: PhaseTable,
): void {
  const needed = new Set(
    copies.flatMap(({ node, digest }) => (digest === undefined ? [] : [fileKey(node, copyPath(digest))])),
  )
  const file = files.find(({ node, path }) => needed.has(fileKey(node, path)))
  if (file === undefined) return
  throw new KcertError(
    'KCERT_ROTATION_REFUSED',
    `a rollback needs the key in ${fileKey(file.node, file.path)}`,
    {
      why: 'another rotation copied it and is not finished; finish that rotation first',
      next: commandLine`${fixed(command)} status`,
    },
  )
}

const caFlags = [
  'client-ca-file',
  'requestheader-client-ca-file',
  'etcd-cafile',
  'root-ca-file',
  'cluster-signing-cert-file',
] as const

/** Returns where each key is in use, by its digest, and the files of which the keys are not known. */
function usesOf(
  observed: Observed<'components' | 'files'>,
  pathsOf: (component: ComponentSnapshot) => readonly string[],
) {
  const found = new Map<Digest, string>()
  const unread: string[] = []
  for (const component of observed.components) {
    for (const path of pathsOf(component)) {
      const spkis = spkisIn(fileAt(observed, component.node, path)?.contains, observed)
      for (const spki of spkis) found.set(spki, `${component.id} reads ${path}`)
      if (spkis.length === 0) unread.push(`${component.id} reads ${path}, which could not be read`)
    }
  }
  return { found, unread }
}

/** Returns the CA files of a component, and the paths where their keys may be. */
function caPathsOf({ flags }: ComponentSnapshot) {
  const trusted = caFlags.flatMap((flag) => flags[flag] ?? [])
  return { trusted, keys: [flags['cluster-signing-key-file'] ?? [], trusted.map(keyPathFor)].flat() }
}

function spkisIn(content: ParsedContent | undefined, { certificates }: Observed<'files'>): readonly Digest[] {
  if (content?.kind === 'public-keys') return content.keys
  const own = content?.kind === 'key' || content?.kind === 'pair' ? [content.spki] : []
  const its = content?.kind === 'certificates' || content?.kind === 'pair' ? content.certificates : []
  return [...own, ...its.flatMap((digest) => certificates.get(digest)?.spki ?? [])]
}

/** Returns where a node may store an old key. */
export function keyPlaces(observed: Observed<'components' | 'kubelets'>, node: string): KeyPlaces {
  const ofComponents = onNode(observed.components, node).flatMap((component) => caPathsOf(component).keys)
  const ofKubelets = onNode(observed.kubelets, node).map(({ clientCaFile }) => keyPathFor(clientCaFile))
  return {
    folders: apiServerOn(observed, node) ? [ownFolder, folderOn(observed, node)] : [ownFolder],
    besideCas: [...new Set([...ofComponents, ...ofKubelets])],
  }
}

/** Returns why an encrypted key is skipped, and the command that identifies it with its password. */
export function whyEncrypted(path: string, olds: readonly OldKey[]) {
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

/** Returns the file names of a key, and of its CA's certificate, in the archive. */
export function archiveNames({ ca, spki }: OldKey): { readonly key: string; readonly certificate: string } {
  const stem = ca === undefined ? 'sa' : ca.name === 'cluster' ? 'ca' : `${ca.name}-ca`
  const name = `${stem}-old-${spki.slice(0, 12)}`
  return { key: `${name}.key`, certificate: `${name}.crt` }
}

function notFinished(history: readonly JournalEntry[], { command }: PhaseTable): KcertError {
  if (history.length === 0) {
    return new KcertError('KCERT_ROTATION_REFUSED', 'no journal of a finished rotation', {
      why: 'the journal identifies the old key; neither this machine nor the cluster has it (pass --journal FILE)',
      next: commandLine`${fixed(command)} status`,
    })
  }
  return new KcertError('KCERT_ROTATION_REFUSED', 'the rotation is not finished', {
    why: 'a rollback needs the old key until the last phase is complete',
    next: commandLine`${fixed(command)}`,
  })
}
