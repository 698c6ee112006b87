import { hash } from 'node:crypto'
import { readlinkSync } from 'node:fs'
import { orUndefined, systemCode } from '../errors/caught.ts'
import { textIfReadable } from './required-file.ts'

// The identity of a process. Process ids are reused, so the boot id and the start time of the process are part of it.

/** Returns an identifier that changes with each boot of the machine; empty where the system has none. */
export function bootId(): string {
  return textIfReadable('/proc/sys/kernel/random/boot_id')?.trim() ?? ''
}

/**
 * Returns this machine's id as a kubelet reports it (cadvisor reads the same files, in this order). Undefined if no file exists
 * or contains an id: images have an empty file, or the word "uninitialized".
 */
export function machineId(): string | undefined {
  const [id] = ['/etc/machine-id', '/var/lib/dbus/machine-id'].flatMap(
    (path) => textIfReadable(path)?.trim() || [],
  )
  return id !== undefined && /^[0-9a-f]{32}$/.test(id) ? id : undefined
}

/**
 * Returns an identifier of the pid namespace of this machine or container. Process ids are meaningful only there, and a container
 * may have the host name of its machine. Undefined where there is no /proc.
 */
export function processNamespace(): string | undefined {
  return orUndefined(() => readlinkSync('/proc/self/ns/pid'))
}

/** Returns the start time of the process; empty when there is no such process, and "running" when its start cannot be read. */
export function startedTicksOf(pid: number): string {
  const stat = textIfReadable(`/proc/${pid}/stat`)
  // The second field is the program's name in parentheses, which may contain any character. starttime is the 20th field after it.
  if (stat !== undefined) return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  try {
    process.kill(pid, 0)
    return 'running'
  } catch (error) {
    return systemCode(error) === 'EPERM' ? 'running' : ''
  }
}

/** Returns true if the process with this start time has ended. A start time that cannot be read (hidepid) proves nothing. */
export function hasEnded(pid: number, startedTicks: string | undefined): boolean {
  const now = startedTicksOf(pid)
  return now !== 'running' && now !== startedTicks
}

/** Returns an identifier of this process, for the name of an object of Kubernetes; undefined where a later process cannot check it. */
export function processIdentity(): string | undefined {
  const place = bootAndNamespace()
  return place && `${place}-${process.pid}-${startedTicksOf(process.pid)}`
}

/** Returns true if the process with this identifier ran since the last boot of this machine, in this container, and has ended. */
export function isEndedHere(identity: string): boolean {
  const [, place, pid, ticks] = /^([0-9a-f]{16})-(\d+)-(\d+)$/.exec(identity) ?? []
  return place !== undefined && place === bootAndNamespace() && hasEnded(Number(pid), ticks)
}

/** Two machines may have one machine ID and one host name, but never one boot ID. */
function bootAndNamespace(): string | undefined {
  const [boot, namespace] = [bootId(), processNamespace()]
  return boot === '' || namespace === undefined
    ? undefined
    : hash('sha256', `${boot} ${namespace}`).slice(0, 16)
}
