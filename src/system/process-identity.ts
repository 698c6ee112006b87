import { readlinkSync } from 'node:fs'
import { orUndefined, systemCode } from '../errors/caught.ts'
import { textIfReadable } from './required-file.ts'

// Which process it was: ids are used again, so they count with the start of the machine and of the process.

/** Returns what is another at each start of the machine; empty where the system does not say. */
export function bootId(): string {
  return textIfReadable('/proc/sys/kernel/random/boot_id')?.trim() ?? ''
}

/**
 * Returns this machine's id as a kubelet reports it (cadvisor reads the same files, in this order); undefined where there is none, or
 * the file has no id: images have an empty file, or the word "uninitialized".
 */
export function machineId(): string | undefined {
  const [id] = ['/etc/machine-id', '/var/lib/dbus/machine-id'].flatMap(
    (path) => textIfReadable(path)?.trim() || [],
  )
  return id !== undefined && /^[0-9a-f]{32}$/.test(id) ? id : undefined
}

/**
 * Returns what tells this machine's processes, and those of a container on it, from others': process ids mean something there alone, and a
 * container may have the name of its machine. Undefined where there is no /proc.
 */
export function processNamespace(): string | undefined {
  return orUndefined(() => readlinkSync('/proc/self/ns/pid'))
}

/** Returns when the process began; empty when there is none. Where there is no /proc, whether it is there at all. */
export function startedTicksOf(pid: number): string {
  const stat = textIfReadable(`/proc/${pid}/stat`)
  // The second field is the program's name in parentheses, with whatever is in it; the 20th behind it is starttime.
  if (stat !== undefined) return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  if (process.platform === 'linux') return ''
  try {
    process.kill(pid, 0)
    return 'running'
  } catch (error) {
    return systemCode(error) === 'EPERM' ? 'running' : ''
  }
}
