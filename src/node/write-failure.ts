import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'

/** Returns the error for a `fail` record of the script, for the caller that requested the change. */
export function writeFailure(node: string, path: string, step: string, said: string): KcertError {
  const where = `${path} on node "${node}"`
  if (step === 'changed') {
    const what = `${where} changed after kcert planned the change`
    return new KcertError('KCERT_NODE_FILE_CHANGED', what, {
      why: `it is now ${inWords(said)}; the next run plans with this content`,
    })
  }
  if (step === 'refused') {
    const what = `the user that kcert runs as on the node may not change ${where}`
    return new KcertError('KCERT_NODE_REFUSED', what, {
      why: `${said}: log in as root, or set "become: sudo" for the node in the inventory`,
    })
  }
  const what = `could not change ${where}; it is unchanged`
  return new KcertError('KCERT_NODE_FILE_NOT_WRITTEN', what, {
    why: reasons[step] ?? (said === '' ? step : said),
    next: commandLine`ls -ld ${folderOf(path)}; df ${folderOf(path)}`,
  })
}

const reasons: Readonly<Record<string, string>> = {
  cut: 'the node received other content than kcert sent: the connection broke, or the disk is full',
  dangling: 'it is a dangling symbolic link',
  'no-folder': 'its folder does not exist',
  'one-file': 'the path of its key leads to the same file',
  'not-a-file': 'it is a folder or a device, which kcert does not replace with a file',
}

function inWords(state: string): string {
  if (state === 'absent') return 'absent'
  if (state === 'other') return 'a folder or a device'
  if (state.startsWith('link:')) return `a symbolic link to ${state.slice('link:'.length)}`
  return `a file with SHA-256 ${state.slice('sum:'.length)}`
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/'
}
