import type { NodeAccess, ProcessFacts } from '../pki/node-access.ts'

// The log of a component: /var/log/pods for a static pod, the journal for a unit.

const script = `
program=$1 pattern=$2 since=$3 pid=$4 lines=$5
set -- /var/log/pods/kube-system_"$program"-*/"$program"/*.log
if [ -e "$1" ]; then
  # The kubelet renames a file of 10 MiB, which verbosity 5 fills within minutes, to *.log.TIME, and packs the ones before it.
  set -- /var/log/pods/kube-system_"$program"-*/"$program"/*.log.*[0-9] "$@"
  [ -e "$1" ] || shift
  for f in "$@"; do [ -r "$f" ] || { echo "$f cannot be read" >&2; exit 3; }; done
  grep -h -E -e "$pattern" "$@" | tail -n "$lines"
  exit 0
fi
unit=$(sed -n 's|^.*/\\([^/]*\\.service\\)$|\\1|p' "/proc/$pid/cgroup" | head -n 1)
[ -n "$unit" ] || { echo "its log is not in /var/log/pods, and process $pid belongs to no systemd unit" >&2; exit 3; }
journal() { journalctl --quiet --no-pager --output short-unix --unit "$unit" --since "@$since" "$@"; }
journal --lines 1 >/dev/null || exit 3
journal | grep -E -e "$pattern" | tail -n "$lines"
exit 0
`

/** A log query: the last lines that match an extended regular expression. */
export interface LogQuery {
  readonly pattern: string
  readonly sinceMs: number
  readonly lines: number
}

/**
 * Returns matching lines of a running component's log, each after its time. For a static pod this is RFC 3339 and covers all its
 * log files; for a unit it is Unix time in seconds, from `sinceMs` on. Throws if there is no log, or it cannot be read.
 */
export async function printedLog(
  node: NodeAccess,
  { program, pid }: ProcessFacts,
  { pattern, sinceMs, lines }: LogQuery,
): Promise<string> {
  // journalctl rejects times before 1970.
  const since = String(Math.max(0, Math.floor(sinceMs / 1000) - 1))
  const argv = ['sh', '-c', script, 'sh', program, pattern, since, String(pid), String(lines)]
  const { status, stdout, stderr } = await node.run(argv)
  if (status !== 0) throw new Error(stderr.trim().slice(0, 200) || `status ${status}`)
  return Buffer.from(stdout).toString('utf8')
}
