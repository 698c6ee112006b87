import { spawnSync } from 'node:child_process'

// A mutant of the code that writes files, run as root, once replaced /dev/null. So for root, the tests run in a sandbox: every
// file system is read-only except an empty /tmp and the folder of the plan, and processes outside are not visible. Other users
// have only their own rights.

const isRoot = process.geteuid?.() === 0

/** Exit status when the sandbox cannot be set up and no mutant was run. */
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

/** Returns the argument vector that runs a command in the sandbox. */
export function sandboxed(...command: readonly string[]): [string, string[]] {
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc']
  // The shell stays, because process 1 must wait for orphans.
  return isRoot
    ? ['unshare', [...namespaces, 'sh', '-c', script, 'sh', ...command]]
    : [command[0]!, command.slice(1)]
}

/** Throws where the sandbox is not available. */
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
