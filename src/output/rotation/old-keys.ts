import type { KeptKeys, RotationOldKeys } from '../../rotation/report.ts'
import { adviceLines, counted, joinSections } from '../sections.ts'
import { table } from '../table.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'
import { someOf } from './cas.ts'

type OldKeyFile = RotationOldKeys['files'][number]

/** Returns where an old key is or may be stored, and the command that deletes it; empty when it is stored nowhere. */
export function keptKeyLines(kept: KeptKeys | undefined): string[] {
  if (kept === undefined) return []
  const { files, encrypted = [], archive, destroy } = kept
  const plain = [
    `the old ${keyOf(files)} is still on ${nodesText(files)}, readable only by root (${counted(files.length, 'file')}); to archive or destroy it:`,
    `  ${printable(archive)}`,
    `  ${printable(destroy)}`,
  ]
  const locked = `${counted(encrypted.length, 'encrypted key')} on ${nodesText(encrypted)} may be the old CA's; to list the files and how to check them: ${printable(destroy)} --dry-run`
  return [...(files.length === 0 ? [] : plain), ...(encrypted.length === 0 ? [] : [locked])]
}

/** Only the rotation of the service account key has key IDs. */
function keyOf(files: readonly { readonly keyId?: string | undefined }[]): string {
  return files.some(({ keyId }) => keyId !== undefined) ? 'service account key' : "CA's key"
}

function nodesText(files: readonly { readonly node: string }[]): string {
  return printable(someOf([...new Set(files.map(({ node }) => node))], 4))
}

/** Returns what happens or happened to the old keys, by node and path. */
export function renderOldKeys(report: RotationOldKeys, view: View): string {
  const { paint } = view
  const { oldCas, serviceAccountKey, files, archived, encrypted, unreachable } = report
  return joinSections([
    oldCas.map(
      ({ ca, subject, keySha256 }) =>
        `${paint.heading(`old ${ca} CA`)} ${printable(subject)}, key ${keySha256.slice(0, 12)}`,
    ),
    serviceAccountKey === undefined
      ? []
      : [`${paint.heading('old service account key')}, key ID ${printable(serviceAccountKey.oldKeyId)}`],
    table(view, files, [
      { title: 'NODE', cell: ({ node }) => node, shrinkTo: 12, cut: 'middle' },
      { title: 'CONTAINS', cell: heldText },
      { title: 'STATE', cell: ({ state }) => state, dropRank: 1 },
      { title: 'PATH', cell: ({ path }) => shortDigest(path), shrinkTo: 24, cut: 'middle' },
    ]),
    archived.map((path) => `archived: ${printable(path)}`),
    encrypted.flatMap(({ node, path, why, next }) => [
      `${paint.status.warning('skipped:')} ${printable(`${node}:${path}`)}: ${why}`,
      ...adviceLines({ next }),
    ]),
    unreachable.map(
      ({ node, why }) => `${paint.severity.critical('not checked:')} ${printable(node)}: ${printable(why)}`,
    ),
    [outcomeText(report)],
  ])
}

function heldText({ ca, keyId, state }: OldKeyFile): string {
  if (keyId !== undefined) return 'service account key'
  if (ca !== undefined) return `key of the ${ca} CA`
  return state === 'removed' ? 'overwritten key' : 'overwritten, not yet removed'
}

/** Copies are named by their digest. Twelve digits distinguish them. */
function shortDigest(path: string): string {
  return path.replace(/(\/[0-9a-f]{12})[0-9a-f]{52}$/, '$1…')
}

function outcomeText({
  outcome,
  action,
  files,
  unreachable,
  encrypted,
  serviceAccountKey,
}: RotationOldKeys): string {
  const key = serviceAccountKey === undefined ? "old CA's key" : 'old service account key'
  switch (outcome) {
    case 'nothing-left':
      return `nothing left to do: no node has the ${key} in kcert's folders`
    case 'planned':
      return `plan only; nothing was ${action === 'archive' ? 'written or removed' : 'removed'}`
    case 'declined':
      return 'declined: nothing was removed'
    case 'incomplete':
      return `incomplete: ${[againText(unreachable), presentText(files, unreachable), leftText(encrypted)].flat().join('; ')}`
    case 'done':
      return action === 'archive'
        ? `done: the ${key} is in the archive and no longer in kcert's folders on any node`
        : `done: the ${key} is no longer in kcert's folders on any node; check node backups and snapshots yourself`
  }
}

function againText(unreachable: RotationOldKeys['unreachable']): string[] {
  if (unreachable.length === 0) return []
  const names = unreachable.map(({ node }) => node).join(', ')
  return [`run the same command again when ${printable(names)} is reachable`]
}

/** Files that another process wrote while kcert removed the others. */
function presentText(files: RotationOldKeys['files'], unreachable: RotationOldKeys['unreachable']): string[] {
  const away = new Set(unreachable.map(({ node }) => node))
  const present = files.filter(({ node, state }) => state === 'present' && !away.has(node))
  if (present.length === 0) return []
  return [`${counted(present.length, 'file')} found after the removal: run the same command again`]
}

function leftText({ length }: RotationOldKeys['encrypted']): string[] {
  return length === 0
    ? []
    : [`for you to check: ${counted(length, 'encrypted key')} that may be the old CA's`]
}
