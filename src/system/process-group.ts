import type { ChildProcess } from 'node:child_process'

/** Kills a program that was started with `detached`, and so leads a process group, together with that group. */
export function killGroup(leader: ChildProcess): void {
  try {
    if (leader.pid !== undefined) process.kill(-leader.pid, 'SIGKILL')
  } catch {
    // With sudo the group belongs to another user and cannot be killed; the leader can.
    leader.kill('SIGKILL')
  }
}
