import { commandLine } from '../../errors/command-line.ts'
import { type Group, kubeletPlaceOf } from '../entries.ts'
import { nameText, type Place, problemAt } from '../problems.ts'
import type { Problem } from '../report.ts'
import type { FileFacts } from '../source.ts'
import type { SnapshotCheck } from './check.ts'

const othersMayRead = 0o004
const groupMayRead = 0o040

/** Finds private keys, tokens and passwords in files that other users may read. */
const checkModes: SnapshotCheck = ({ collection }) => {
  const seen = new Set<string>()
  const found: Problem[] = []
  const check = (place: Place, file: FileFacts | undefined, what: string) => {
    if (file === undefined || seen.has(file.path)) return
    seen.add(file.path)
    const problem = openTo(place, file, what)
    if (problem !== undefined) found.push(problem)
  }
  for (const key of collection.keys)
    if (key.kind === 'private' && !key.encrypted) check(key, key.group.origin.file, 'private key')
  for (const { origin, source, entry, users } of collection.kubeconfigs) {
    const user = users.find(({ secret }) => secret !== undefined)
    if (user?.secret === undefined) continue
    const at = `user ${nameText(user.name)}`
    check({ source, entry: entry === '' ? at : `${entry} ${at}` }, origin.file, user.secret)
  }
  return found
}

function openTo({ source, entry }: Place, { path, mode }: FileFacts, what: string): Problem | undefined {
  if ((mode & (othersMayRead | groupMayRead)) === 0) return undefined
  const octal = (mode & 0o777).toString(8).padStart(4, '0')
  const isOpen = (mode & othersMayRead) !== 0
  const name = pastable(path)
  return problemAt({ source, entry }, 'KEY_READABLE_BY_OTHERS', {
    message: `mode ${octal}: ${isOpen ? 'every user of this machine' : 'the group of the file'} can read the ${what}`,
    ...(name === undefined ? { fix: 'set its mode to 600' } : { next: commandLine`chmod 600 ${name}` }),
    severity: isOpen ? 'warning' : 'info',
  })
}

/** Returns a path that needs no quotes in a command; undefined for any other. */
export function pastable(path: string): string | undefined {
  return /^[\w./@:+,-]+$/.test(path) ? path : undefined
}

/** kubelet-client-current.pem and similar files must be symbolic links. */
const checkCurrentLinks: SnapshotCheck = ({ collection }) =>
  collection.groups.flatMap((group) => notALink(group) ?? [])

function notALink({ source, origin, owner }: Group): Problem | undefined {
  const place = kubeletPlaceOf(origin)
  if (owner.kind !== 'file' || place === undefined) return undefined
  const { file, tree, name } = place
  if ((file.part !== 'current' && file.part !== 'updated') || origin.file?.linkTarget !== undefined)
    return undefined
  const paired = name.replace(/current|updated/, '2000-01-01-00-00-00')
  return problemAt({ source, entry: '' }, 'KUBELET_CURRENT_NOT_A_LINK', {
    message: `${name} is a regular file, but the kubelet needs a symbolic link there to start`,
    ...(tree.isInPlace
      ? {
          next: commandLine`cd ${tree.folder} && mv ${name} ${paired} && ln -s ${paired} ${name} && systemctl restart kubelet`,
        }
      : {
          fix: 'if this is a copy, copy the folder with its links (cp -a, tar); on the node itself it must be a link',
        }),
    severity: tree.isInPlace ? 'critical' : 'warning',
  })
}

/** The modes and links of files. */
export const fileChecks: readonly SnapshotCheck[] = [checkModes, checkCurrentLinks]
