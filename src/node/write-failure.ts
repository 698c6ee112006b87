import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'

/** Returns what a `fail` record of the script means for the one who asked for the change. */
export function writeFailure(node: string, path: string, step: string, said: string): KcertError {
  const where = `${path} on node "${node}"`
  if (step === 'changed') {
    const what = `${where} is not what it was when the change was planned`
    return new KcertError('KCERT_NODE_FILE_CHANGED', what, {
      why: `there is now ${inWords(said)}`,
      next: 'see who changed it, then plan again: what stands there now is taken into account',
    })
  }
  if (step === 'refused') {
    const what = `${where} may not be changed by the user that kcert is there`
    return new KcertError('KCERT_NODE_REFUSED', what, {
      why: said,
      next: 'log in as root, or set become: sudo for the node',
    })
  }
  const what = `${where} could not be changed; what was there is untouched`
  return new KcertError('KCERT_NODE_FILE_NOT_WRITTEN', what, {
    why: reasons[step] ?? (said === '' ? step : said),
    next: commandLine`look at the folder and its space on the node: ls -ld ${folderOf(path)}; df ${folderOf(path)}`,
  })
}

const reasons: Readonly<Record<string, string>> = {
  cut: 'what arrived there is not what was sent: the connection was cut, or the disk is full',
  dangling: 'it is a symbolic link that leads nowhere',
  'no-folder': 'its folder does not exist',
  'not-a-file': 'it is a folder or a device, and is not replaced by a file',
}

function inWords(state: string): string {
  if (state === 'absent') return 'nothing of that name'
  if (state === 'other') return 'a folder or a device'
  if (state.startsWith('link:')) return `a symbolic link to ${state.slice('link:'.length)}`
  return `a file with SHA-256 ${state.slice('sum:'.length)}`
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/'
}
