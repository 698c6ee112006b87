import { commandLine } from '../errors/command-line.ts'
import { kubeadmFolders } from '../pki/kubeadm.ts'
import type { MissingFile, TreePlace } from '../pki/kubeadm-tree.ts'
import { anewAdvice } from './advice.ts'
import { problemAt } from './problems.ts'
import type { Problem } from './report.ts'
import type { UnreadableSource } from './source.ts'

// Files that could not be read, and files that are not there.

const relevantName =
  /\.(?:crt|cer|cert|pem|der|key|pub|p12|pfx|p7b|p7c|csr|req|conf|kubeconfig)$|^(?:config|kubeconfig)$/

/** Returns the problem that an unreadable source is, or undefined for a file of a walked folder that is nobody's concern. */
export function unreadableProblem(
  unreadable: UnreadableSource,
  place: TreePlace | undefined,
  isTargetHere: boolean,
): Problem | undefined {
  const { name, reason, detail, isFolder, root } = unreadable
  if (reason === 'seen-before') return undefined
  const where = { source: name, entry: '' }
  if (reason === 'dangling-link' && place !== undefined && 'file' in place && place.file.part === 'current') {
    // In a copy the link still names the folder that it was copied from; the file itself was copied with it.
    if (isTargetHere) return undefined
    const { isInPlace, folder } = place.tree
    return problemAt(where, 'KUBELET_CURRENT_DANGLES', {
      message: detail,
      next: commandLine`point it at the newest dated file of ${folder} (ln -sfn), or move all of that role to another folder and restart the kubelet, which then asks for a new certificate`,
      severity: isInPlace ? 'critical' : 'warning',
    })
  }
  const fileName = name.slice(name.lastIndexOf('/') + 1)
  const mayMatter = place !== undefined || (reason !== 'not-a-file' && relevantName.test(fileName))
  if (root !== undefined && !isFolder && !mayMatter) return undefined
  const isKey = !isFolder && fileName.endsWith('.key')
  const [message, next] = reasons[reason]
  return problemAt(where, 'SOURCE_UNREADABLE', {
    message: detail === '' ? message : `${message}: ${detail}`,
    next,
    // A private key that only its owner may read is as it should be.
    severity: root !== undefined && isKey && reason === 'permission' ? 'info' : undefined,
  })
}

const reasons: Readonly<Record<UnreadableSource['reason'], readonly [message: string, next: string]>> = {
  'not-found': ['not found', 'check the path'],
  permission: ['no permission to read it', 'run kcert with sudo, or as a user who may read it'],
  'dangling-link': ['a link that leads nowhere', 'remove the link, or bring back what it led to'],
  'too-large': ['larger than kcert reads', 'split it, or name the part that matters'],
  'not-a-file': ['not a regular file', 'name a file or a folder'],
  'seen-before': ['read by another name', 'nothing'],
  io: ['could not be read', 'try again, and look at the file system if it stays so'],
}

/** Returns the problem that a missing file of kubeadm's or the kubelet's is. */
export function missingProblem(
  source: string,
  missing: MissingFile,
  { isThere, lacksKey }: { readonly isThere: boolean; readonly lacksKey: boolean },
): Problem {
  return problemAt({ source, entry: '' }, 'KUBEADM_FILE_MISSING', {
    // A disk that was full leaves empty files, and whoever looks for a missing one finds it there.
    message: isThere ? 'the file is there, and no kubeconfig is in it' : `${missing.role} is missing`,
    next: missingAdvice(missing, isThere, lacksKey),
    severity: isNeededToStart(missing) ? 'critical' : undefined,
  })
}

/** What a component reads when it starts; people alone use admin.conf, and a kubelet makes its link again. */
function isNeededToStart({ row }: MissingFile): boolean {
  return row !== undefined && (row.kind !== 'kubeconfig' || row.usedBy !== undefined)
}

function missingAdvice({ row, part }: MissingFile, isThere: boolean, lacksKey: boolean): string {
  if (row === undefined) return 'restart the kubelet, which makes the link again, and look again'
  switch (row.kind) {
    case 'ca':
      return 'copy it from another control-plane node or a backup: a new one would be a new CA, which nobody trusts yet'
    case 'service-account-key':
      if (part === 'public-key' && !lacksKey) {
        const path = `${kubeadmFolders.pki}/${row.file}`
        return commandLine`on the node itself: openssl pkey -in ${path}.key -pubout -out ${path}.pub`
      }
      return 'copy it from another control-plane node or a backup: a new pair makes every service account token invalid'
    case 'kubeconfig':
      return anewAdvice(row, isThere ? undefined : [])
    case 'leaf': {
      const { pki } = kubeadmFolders
      return part === 'key'
        ? `bring the key back, or ${anewAdvice(row, [`${pki}/${row.file}.crt`])}`
        : anewAdvice(row, [`${pki}/${row.file}.key`])
    }
  }
}
