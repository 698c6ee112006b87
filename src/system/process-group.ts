import type { ChildProcess } from 'node:child_process'

/** Kills a program that was started `detached`, and so leads a group of processes, together with that group. */
export function killGroup(leader: ChildProcess): void {
  try {
    if (leader.pid !== undefined) process.kill(-leader.pid, 'SIGKILL')
  } catch {
    // Of another user's processes, by sudo, none may be killed; the leader may.
    leader.kill('SIGKILL')
  }
}
