import { spawnSync } from 'node:child_process'

// A mutant of the code that writes files, run as root, once replaced /dev/null. So root's tests run where every file system is
// read-only but an empty /tmp and the folder of the plan, and where no process outside can be named. Others have no more than their own
// rights.

const isRoot = process.geteuid?.() === 0

/** Exit status of a sandbox that cannot be set up: no mutant was tried in it. */
export const noSandbox = 125

const script = `set -e
trap 'exit ${noSandbox}' EXIT
for at in $(cut -d ' ' -f 2 /proc/self/mounts | sort -u); do
  # A mount point below another mount is out of reach.
  mount -o remount,bind,ro "$at" || test ! -w "$at"
done
mount -t tmpfs tmpfs /tmp
mount --bind "$KCERT_MUTATION" "$KCERT_MUTATION"
mount -o remount,bind,rw "$KCERT_MUTATION"
set +e
trap - EXIT
TMPDIR=/tmp "$@"`

/** Returns the argument vector that runs a command where it can change nothing of the machine. */
export function sandboxed(...command: readonly string[]): [string, string[]] {
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc']
  // The shell stays, since process 1 has to wait for orphans.
  return isRoot
    ? ['unshare', [...namespaces, 'sh', '-c', script, 'sh', ...command]]
    : [command[0]!, command.slice(1)]
}

/** Throws where the sandbox cannot be had. */
export function checkSandbox(): void {
  if (!isRoot) return
  const [program, args] = sandboxed(
    'sh',
    '-c',
    '! test -w . && ! test -w /dev && test -w /tmp && test -w "$KCERT_MUTATION"',
  )
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  if (status === 0) return
  const why = error?.message ?? (stderr.trim() || 'the checkout is not read-only in it, or it is below /tmp')
  throw new Error(`mutants run as root need a sandbox (unshare and mount): ${why}. Run this as another user.`)
}
