import { commandLine } from '../errors/command-line.ts'
import type { Advice } from '../errors/kcert-error.ts'
import { kubeadmFolders } from '../pki/kubeadm.ts'
import type { MissingFile, TreePlace } from '../pki/kubeadm-tree.ts'
import { readPem } from '../x509/pem.ts'
import { creationCommand, creationNote } from './advice.ts'
import { problemAt } from './problems.ts'
import type { Problem } from './report.ts'
import type { Shape } from './sniff.ts'
import type { UnreadableSource } from './source.ts'

// Files that could not be read, that do not exist, or that hold nothing.

const relevantName =
  /\.(?:crt|cer|cert|pem|der|key|pub|p12|pfx|p7b|p7c|csr|req|conf|kubeconfig)$|^(?:config|kubeconfig)$/

/** Returns the problem for an unreadable source, or undefined for an irrelevant file of a folder. */
export function unreadableProblem(
  unreadable: UnreadableSource,
  place: TreePlace | undefined,
  isTargetHere: boolean,
): Problem | undefined {
  const { name, reason, detail, isFolder, root } = unreadable
  if (reason === 'seen-before') return undefined
  const where = { source: name, entry: '' }
  if (reason === 'dangling-link' && place !== undefined && 'file' in place && place.file.part === 'current') {
    // In a copy the link still points to the original folder. The file itself was copied too.
    if (isTargetHere) return undefined
    const { isInPlace, folder } = place.tree
    return problemAt(where, 'KUBELET_CURRENT_DANGLES', {
      message: detail,
      fix: `set the link to the newest dated file of ${folder} (ln -sfn), or move all files of that role to another folder and restart the kubelet, which then requests a new certificate`,
      severity: isInPlace ? 'critical' : 'warning',
    })
  }
  const fileName = name.slice(name.lastIndexOf('/') + 1)
  const mayMatter = place !== undefined || (reason !== 'not-a-file' && relevantName.test(fileName))
  if (root !== undefined && !isFolder && !mayMatter) return undefined
  const isKey = !isFolder && fileName.endsWith('.key')
  const [message, fix] = reasons[reason]
  return problemAt(where, 'SOURCE_UNREADABLE', {
    message: detail === '' ? message : `${message}: ${detail}`,
    fix,
    // A private key that only its owner can read has the right mode.
    severity: root !== undefined && isKey && reason === 'permission' ? 'info' : undefined,
  })
}

const reasons: Readonly<Record<UnreadableSource['reason'], readonly [message: string, fix: string]>> = {
  'not-found': ['not found', 'check the path'],
  permission: ['no permission to read it', 'run kcert with sudo, or as a user who may read it'],
  'dangling-link': ['dangling link', 'remove the link, or restore its target'],
  'too-large': ['too large for kcert', 'split it, or inspect the part that matters'],
  'not-a-file': ['not a regular file', 'inspect a file or a folder'],
  'seen-before': ['already read under another name', 'nothing to do'],
  io: ['could not be read', 'try again, then check the file system'],
}

/** Returns the problem for a missing file of kubeadm or the kubelet. */
export function missingProblem(
  source: string,
  missing: MissingFile,
  { isThere, lacksKey }: { readonly isThere: boolean; readonly lacksKey: boolean },
): Problem {
  return problemAt({ source, entry: '' }, 'KUBEADM_FILE_MISSING', {
    // A full disk leaves empty files, so "missing" would be wrong.
    message: isThere ? 'the file exists but contains no kubeconfig' : `${missing.role} is missing`,
    ...missingAdvice(missing, isThere, lacksKey),
    severity: isNeededToStart(missing) ? 'critical' : undefined,
  })
}

/** True if a component reads the file at its start. Only people use admin.conf, and a kubelet creates its link again. */
function isNeededToStart({ row }: MissingFile): boolean {
  return row !== undefined && (row.kind !== 'kubeconfig' || row.usedBy !== undefined)
}

function missingAdvice({ row, part, hasKey }: MissingFile, isThere: boolean, lacksKey: boolean): Advice {
  if (row === undefined)
    return { fix: 'restart the kubelet, which creates the link again', next: 'systemctl restart kubelet' }
  switch (row.kind) {
    case 'ca':
      return {
        fix: 'copy it from another control-plane node or a backup: a new one would be another CA, which no component trusts yet',
      }
    case 'service-account-key':
      if (part === 'public-key' && !lacksKey) {
        const path = `${kubeadmFolders.pki}/${row.file}`
        return {
          fix: 'write it again on the node itself',
          next: commandLine`openssl pkey -in ${path}.key -pubout -out ${path}.pub`,
        }
      }
      return {
        fix: 'copy it from another control-plane node or a backup: a new pair makes every service account token invalid',
      }
    case 'kubeconfig':
      return { fix: creationNote(row), next: creationCommand(row, isThere ? undefined : []) }
    case 'leaf': {
      const { pki } = kubeadmFolders
      return part === 'key'
        ? {
            fix: `restore the key, or ${creationNote(row)}`,
            next: creationCommand(row, [`${pki}/${row.file}.crt`]),
          }
        : { fix: creationNote(row), next: creationCommand(row, hasKey ? [`${pki}/${row.file}.key`] : []) }
    }
  }
}

const javaKeystore = 0xfeedfeed

/** Returns the problem of a target without certificates, requests, keys and kubeconfigs. */
export function nothingFound(
  source: string,
  bytes: Uint8Array,
  shape: Shape,
): Advice & { readonly message: string } {
  const message = 'it contains no certificate, request, key or kubeconfig'
  if (shape === 'empty') return { message: `empty: ${message}`, fix: 'check the program that writes it' }
  if (shape === 'pem') {
    const labels = [...new Set(readPem(bytes).blocks.map(({ label }) => label))].slice(0, 5)
    if (labels.length > 0) return { message: `${message}, only ${labels.join(', ')}`, fix: 'check the path' }
  }
  const isJavas =
    bytes.length > 4 && Buffer.from(bytes.buffer, bytes.byteOffset, 4).readUInt32BE(0) === javaKeystore
  if (!isJavas) return { message, fix: 'check the path' }
  return {
    message: 'a Java keystore (JKS), which kcert does not read',
    fix: 'convert it, then inspect the result',
    next: commandLine`keytool -importkeystore -srckeystore ${source} -destkeystore ${`${source}.p12`} -deststoretype pkcs12`,
  }
}
