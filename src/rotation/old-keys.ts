import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Digest } from './certificate-record.ts'
import { changesIn, isOfFinished, type JournalEntry } from './journal.ts'
import { folderOn, keyBeside } from './material.ts'
import {
  apiServerOn,
  type ComponentSnapshot,
  type FileHolds,
  fileAt,
  type Observed,
  onNode,
} from './snapshot.ts'

// The old CA's key after its rotation. It stays among the copies on the nodes until the operator says what to do
// with it: kcert by itself neither destroys a key nor carries it away.

/** A CA whose key may go. */
export interface OldCa {
  readonly ca: string
  readonly subject: string
  /** Of its certificate. */
  readonly digest: Digest
  readonly spki: Digest
}

/** A file of kcert's own folders on a node. */
export interface KeyFile {
  readonly path: string
  readonly digest: Digest
  readonly sizeBytes: number
  /** Of the key; absent where it is overwritten already and only the file is left. */
  readonly spki?: Digest
}

/** Where the old CA's key may lie on a node. */
export interface KeyPlaces {
  /** kcert's own, with all that is below them. */
  readonly folders: readonly string[]
  /** Paths of keys beside the CAs of components and kubelets; one of these is in use unless it is encrypted. */
  readonly besideCas: readonly string[]
}

export interface FoundKeys {
  /** Files below the folders that hold one of the keys, or held one. */
  readonly keys: readonly KeyFile[]
  /** Paths of keys that only a password tells apart, in all places. */
  readonly encrypted: readonly string[]
}

/** The places on the nodes where an old CA's key may lie. */
export interface OldKeyFiles {
  /** Looks for these keys, and for encrypted ones. Throws KCERT_NODE_UNREACHABLE. */
  find(node: string, places: KeyPlaces, spkis: ReadonlySet<Digest>): Promise<FoundKeys>
  /** Returns a key's bytes. Throws KCERT_NODE_FILE_CHANGED when they are not those that were found. */
  read(node: string, file: KeyFile): Promise<Uint8Array>
  /** Overwrites the file where it lies, then removes it; a file that is gone is done. Throws as `read` does. */
  destroy(node: string, file: KeyFile): Promise<void>
  /** Returns the PEM of a certificate that was read on the way; undefined when none had this digest. */
  certificate(digest: Digest): string | undefined
  /** Returns which key these bytes are; undefined when they are none. */
  spkiOf(content: Uint8Array): Digest | undefined
}

/** A folder of the operator. */
export interface KeyArchive {
  readonly folder: string
  /** Writes a new file, and returns its content. Never overwrites an existing one. */
  keep(name: string, content: Uint8Array | string, mode: number): Promise<Uint8Array>
}

/** Where kcert keeps what is its own on every node. */
const ownFolder = '/var/lib/kcert'

/** Returns the old CAs of the rotation that the journal is of. Throws KCERT_ROTATION_REFUSED before it came to its end. */
export function oldCasOf(history: readonly JournalEntry[]): readonly OldCa[] {
  const changes = changesIn(history)
  if (!isOfFinished(history) || changes.length === 0) throw notFinished(history)
  for (const { ca, oldCa, newCa } of changes) if (oldCa.spki === newCa.spki) throw sameKey(ca)
  return changes.map(({ ca, oldCa: { subject, digest, spki } }) => ({ ca, subject, digest, spki }))
}

/** Throws KCERT_ROTATION_REFUSED when a component uses one of these keys, or when no API server could be looked at. */
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
  'root-ca-file',
  'cluster-signing-cert-file',
] as const

/** Where each key of a CA is in use: trusted by a component, or there to sign. */
function usedKeys(observed: Observed<'components' | 'files'>): ReadonlyMap<Digest, string> {
  const uses = new Map<Digest, string>()
  for (const component of observed.components) {
    const { trusted, keys } = caPathsOf(component)
    for (const path of [...trusted, ...keys]) {
      const used = spkisIn(fileAt(observed, component.node, path)?.holds, observed)
      for (const spki of used) uses.set(spki, `${component.id} reads ${path}`)
    }
  }
  return uses
}

/** Returns the CA files of a component, and where their keys lie if they lie there. */
function caPathsOf({ flags }: ComponentSnapshot) {
  const trusted = caFlags.flatMap((flag) => flags[flag] ?? [])
  return { trusted, keys: [flags['cluster-signing-key-file'] ?? [], trusted.map(keyBeside)].flat() }
}

function spkisIn(holds: FileHolds | undefined, { certificates }: Observed<'files'>): readonly Digest[] {
  const own = holds?.kind === 'key' || holds?.kind === 'pair' ? [holds.spki] : []
  const its = holds?.kind === 'certificates' || holds?.kind === 'pair' ? holds.certificates : []
  return [...own, ...its.flatMap((digest) => certificates.get(digest)?.spki ?? [])]
}

/** Returns where an old CA's key may lie on a node. */
export function keyPlaces(observed: Observed<'components' | 'kubelets'>, node: string): KeyPlaces {
  const ofComponents = onNode(observed.components, node).flatMap((component) => caPathsOf(component).keys)
  const ofKubelets = onNode(observed.kubelets, node).map(({ clientCaFile }) => keyBeside(clientCaFile))
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

/** Returns the names, in the archive, of a CA's key and certificate. */
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

function sameKey(ca: string): KcertError {
  return new KcertError('KCERT_ROTATION_REFUSED', `the new ${ca} CA has the key of the old one`, {
    why: 'the key in use is the only key',
    next: 'kcert rotate-ca --phase 1',
  })
}
