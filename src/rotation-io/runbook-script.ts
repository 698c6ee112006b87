import { shellWord as shownWord } from '../errors/command-line.ts'
import { fileFunctions } from '../node/node-script.ts'
import { shellWord } from '../node/protocol.ts'
import type { Expected } from '../pki/node-access.ts'
import type { ScriptFile } from '../rotation/runbook.ts'
import type { RecordedChange } from './recording-node.ts'

// The script of one node. It is short: it calls the functions in node.sh, which kcert's own sessions on nodes also use. Content
// is in separate files, so that no key is on a command line.

/** A process that must restart. */
export interface ScriptedRestart {
  readonly kind: 'restart'
  readonly program: string
  /** Start time of the process to replace, in whole seconds of the node's clock; absent when none runs. */
  readonly startedAt?: number
  /** The command that restarts it; absent for a static pod, which its kubelet restarts. */
  readonly argv?: readonly string[]
  /** For a static pod whose manifest stays as it is: SIGTERM ends its process, and SIGKILL after this time, if it is given. */
  readonly signal?: { readonly killAfterSeconds?: number }
}

export type ScriptedChange = RecordedChange | ScriptedRestart

export interface ScriptFacts {
  /** The command of the rotation: "kcert rotate-ca". */
  readonly command: string
  readonly phase: number
  readonly title: string
  /** The command to run after all scripts. */
  readonly next: string
  readonly node: string
  /** Output of `uname -n` on the node; absent when unknown. */
  readonly hostname?: string
}

/** Returns the script and the files that it needs. */
export function nodeRunbook(facts: ScriptFacts, changes: readonly ScriptedChange[]): ScriptFile[] {
  const contents: { readonly name: string; readonly content: Uint8Array; readonly isPrivate: boolean }[] = []
  const states = statesByPath(changes)
  const checks: string[] = [...states].flatMap(([path, { first, after }]) =>
    first === 'any' ? [] : [`check ${words([path, first, ...after])}`],
  )
  let keyWords: readonly string[] = []
  const steps = changes.flatMap((change, index): string | readonly string[] => {
    if (change.kind === 'restart') return restartLine(change)
    if (change.kind === 'make-folder') return `folder ${words([change.path, change.mode.toString(8)])}`
    if (change.kind === 'remove-folder') return `empty ${words([change.path])}`
    const later = laterStates(changes, index)
    const past = later.length === 0 ? '' : `past ${words([change.path, ...later])} || `
    if (change.kind === 'link') {
      return `${past}link ${words([change.path, change.to, wanted(change.replaces)])}`
    }
    if (change.kind === 'remove') return `${past}remove ${words([change.path, wanted(change.holds)])}`
    const { path, replaces, sha256, mode, content, isKeyOfNext } = change
    const file = [path, wanted(replaces), sha256]
    let from = 'from' in content ? content.from : ''
    if (!('from' in content)) {
      from = String(contents.length + 1).padStart(3, '0')
      contents.push({ name: from, content, isPrivate: mode === undefined || (mode & 0o077) === 0 })
      checks.push(`have ${words([from, sha256, path, `sum:${sha256}`, ...later])}`)
    }
    const key = keyWords
    keyWords = isKeyOfNext ? [...file, from] : []
    if (isKeyOfNext) return []
    return `${past}${key.length === 0 ? 'put' : 'pair'} ${words([...key, ...file, mode === undefined ? '' : mode.toString(8), from])}`
  })
  const privates = contents.filter(({ isPrivate }) => isPrivate).map(({ name }) => name)
  const text = [
    '#!/bin/sh',
    `# ${facts.command}, phase ${facts.phase} on ${shownWord(facts.node)}: ${facts.title}`,
    '# Run as root on that node: sh run.sh. You can stop it and run it again. It compares every file with the plan before it',
    '# writes, and writes nothing if one differs. Files here that contain keys are removed once they are in place.',
    '# KCERT_ROOT=/mnt: work on a file system mounted there.',
    'H=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd) || exit 1',
    '. "$H/node.sh"',
    `C=${words([`${facts.command} runbook`])}`,
    `begin ${words([facts.node, facts.hostname ?? ''])}`,
    '',
    '# Each file must be as planned, or as this script writes it.',
    ...checks,
    'checked',
    '',
    ...steps,
    ...(privates.length === 0 ? [] : [`forget ${privates.join(' ')}`]),
    `finish ${words([facts.next])}`,
    '',
  ]
  return [
    { name: 'run.sh', content: text.join('\n') },
    { name: 'node.sh', content: library },
    ...contents.map(({ name, content }) => ({ name, content })),
  ]
}

function restartLine({ program, startedAt, argv, signal }: ScriptedRestart): string {
  const started = startedAt === undefined ? '' : String(startedAt)
  if (signal !== undefined)
    return `signal ${words([program, started, String(signal.killAfterSeconds ?? '')])}`
  return argv === undefined
    ? `await_start ${words([program, started])}`
    : `restart ${words([program, started, ...argv])}`
}

/** Returns the content of each path before the script, and after each of its changes. */
function statesByPath(changes: readonly ScriptedChange[]) {
  const states = new Map<string, { readonly first: string; readonly after: string[] }>()
  for (const change of changes) {
    const after = stateAfter(change)
    if (after === undefined || !('path' in change)) continue
    const known = states.get(change.path)
    if (known !== undefined) known.after.push(after)
    else {
      const expected =
        change.kind === 'remove' ? change.holds : 'replaces' in change ? change.replaces : 'anything'
      states.set(change.path, { first: wanted(expected), after: [after] })
    }
  }
  return states
}

/** Returns the states that a later line creates: a script that runs again may find them. */
function laterStates(changes: readonly ScriptedChange[], index: number): string[] {
  const { path } = changes[index] as { path: string }
  return changes
    .slice(index + 1)
    .flatMap((later) => ('path' in later && later.path === path ? (stateAfter(later) ?? []) : []))
}

function stateAfter(change: ScriptedChange): string | undefined {
  if (change.kind === 'write') return `sum:${change.sha256}`
  if (change.kind === 'link') return `link:${change.to}`
  return change.kind === 'remove' ? 'absent' : undefined
}

function wanted(expected: Expected): string {
  if (expected === 'anything') return 'any'
  if (expected === 'absent') return 'absent'
  return 'sha256' in expected ? `sum:${expected.sha256}` : `link:${expected.linkTarget}`
}

function words(all: readonly string[]): string {
  return all.map(shellWord).join(' ')
}

/** Content of node.sh: the functions of a session, with messages for people instead of kcert. */
const library = `# Used by run.sh.
${fileFunctions}
R=\${KCERT_ROOT-}

say() { printf '%s\\n' "$*"; }
refuse() { say "$*" >&2; exit 9; }
kc_fail() {
  case $1 in
    changed) refuse "$P changed since this was planned: $2. It was not changed now; write new scripts: $C" ;;
    cut) refuse "$P: the written file differs from the prepared one (disk full?). The original was kept." ;;
    *) refuse "$P: $1: $2" ;;
  esac
}

# NODE HOSTNAME|''
begin() {
  if [ ! "$R" ]; then
    [ "$(id -u)" = 0 ] || refuse 'run this as root'
    [ ! "$2" ] || [ "$(uname -n)" = "$2" ] || refuse "this script is for node $1 ($2), but this machine is $(uname -n)"
  fi
  bad=
}

# What PATH is now; of a link that is replaced through, what it leads to.
state() {
  kc_state "$R$1"
  shift
  case $S in
    link:*) case " $* " in *' link:'*) ;; *) [ -f "$R$P" ] && S=sum:$(kc_sum <"$R$P") ;; esac ;;
  esac
}

# PATH STATE...: one of them it is.
past() {
  P=$1
  state "$@"
  shift
  for s; do [ "$s" = "$S" ] && return 0; done
  return 1
}

check() {
  past "$@" && return
  say "$1 changed since this was planned: $S" >&2
  bad=1
}

# NAME SHA256 PATH STATE...: the content is beside this script, or in place already.
have() {
  n=$1 h=$2
  shift 2
  past "$@" && return
  [ -f "$H/$n" ] && [ "$(kc_sum <"$H/$n")" = "$h" ] && return
  say "$n beside this script is missing, or is not the file prepared for $1" >&2
  bad=1
}

checked() { [ ! "$bad" ] || refuse 'nothing was written'; }

nonce() { echo "$$"; }

# A shell of its own, since a write that fails ends it.
act() {
  a=$1
  shift
  out=$( "$@" ) || exit 9
  case $out in wrote* | removed*) say "$a" ;; esac
}

# NAME beside this script, or the path of a file on the node
source_of() { case $1 in /*) echo "$R$1" ;; *) echo "$H/$1" ;; esac; }

# PATH EXPECTED SHA256 MODE|'' SOURCE
put() {
  P=$1
  case $5 in /*) set -- "$@" "copied $5" ;; *) set -- "$@" "wrote $1" ;; esac
  act "$6" kc_write "$R$1" "$(nonce)" "$2" "$3" "$4" '' "$(source_of "$5")"
}

# KEY EXPECTED SHA256 SOURCE, and the words of put for its certificate
pair() {
  P="$5 or $1"
  act "wrote $1 and $5" kc_write_pair "$R$1" "$2" "$3" "$(source_of "$4")" \\
    "$R$5" "$(nonce)" "$6" "$7" "$8" '' "$(source_of "$9")"
}

# PATH TARGET EXPECTED
link() { P=$1; act "linked $1" kc_link "$R$1" "$(nonce)" "$2" "$3"; }

# PATH EXPECTED
remove() { P=$1; act "removed $1" kc_remove "$R$1" "$2"; }

# PATH MODE
folder() { P=$1; act "created $1" kc_mkdir "$R$1" "$2"; }

# PATH: goes when nothing is in it.
empty() { rmdir "$R$1" 2>/dev/null || :; }

# NAME...
forget() { for n; do rm -f "$H/$n"; done; kc_sync "$H"; }

# PROGRAM: its processes, one per line: ID, and start in seconds of this clock.
processes() {
  n=$(printf '%.15s' "$1")
  read -r up _ <"$R/proc/uptime"
  for p in "$R"/proc/[0-9]*; do
    c=; { IFS= read -r c <"$p/comm"; } 2>/dev/null
    [ "$c" = "$n" ] || continue
    s=; { IFS= read -r s <"$p/stat"; } 2>/dev/null
    [ "$s" ] || continue
    set -- \${s##*) }
    shift 19
    echo "\${p##*/} $(($(date +%s) - \${up%.*} + $1 / $(getconf CLK_TCK 2>/dev/null || echo 100)))"
  done
}

# PROGRAM: when its process was started; nothing when none runs.
started() { processes "$1" | { read -r _ s && echo "$s"; }; }

# STARTED|'': true when that process still runs.
is_old() { [ "$1" ] && [ "$2" ] && [ $(($2 - $1)) -ge -2 ] && [ $(($2 - $1)) -le 2 ]; }

# PROGRAM STARTED|''
await_start() {
  i=0 since=
  while [ $i -lt "\${KCERT_WAIT:-180}" ]; do
    t=$(started "$1")
    if [ "$t" ] && ! is_old "$2" "$t"; then
      # A process that exits at once is restarted repeatedly, so it must run for a while.
      [ "$since" ] || since=$i
      [ $((i - since)) -lt "\${KCERT_SETTLE:-5}" ] || { say "$1 restarted"; return 0; }
    else since=; fi
    sleep 1
    i=$((i + 1))
  done
  refuse "$1 did not come back within \${KCERT_WAIT:-180} s: check its log, then run this again"
}

# PROGRAM STARTED|'' WORD...
restart() {
  g=$1 o=$2
  shift 2
  t=$(started "$g")
  if [ ! "$t" ] || is_old "$o" "$t"; then
    case $1 in systemctl) systemctl daemon-reload || refuse 'systemctl daemon-reload failed' ;; esac
    "$@" || refuse "$* failed; fix the cause, then run this again"
  fi
  await_start "$g" "$o"
}

# PROGRAM STARTED|'': the ID of that process; nothing when it is gone.
old_id() {
  processes "$1" | while read -r id s; do
    ! is_old "$2" "$s" || echo "$id"
  done
}

# PROGRAM STARTED|'' SECONDS|'': ends the process of a static pod; its kubelet starts it again.
signal() {
  g=$1 o=$2 k=$3
  id=$(old_id "$g" "$o")
  if [ "$id" ]; then
    # Another pod may run the same program, and nothing here shows which process is the node's own.
    [ "$(processes "$g" | wc -l)" -eq 1 ] || refuse "several processes of $g run here: restart the container of the static pod yourself, then run this again"
    kill -s TERM "$id" || [ ! -e "$R/proc/$id" ] || refuse "$g (process $id) could not be stopped"
    i=0
    while [ "$k" ] && [ "$(old_id "$g" "$o")" = "$id" ]; do
      if [ $i -ge "$k" ]; then kill -s KILL "$id" || :; break; fi
      sleep 1
      i=$((i + 1))
    done
  fi
  # An API server is ready about 12 s after it started.
  KCERT_SETTLE=\${KCERT_SETTLE:-15} await_start "$g" "$o"
}

# COMMAND
finish() { say "done on this node. When all nodes are done, run on the machine with kcert.yaml: $1"; }
`
