// The shell functions that run on a node. They are sent once per session and kept in the shell's memory; nothing is installed.
// They are tested with dash, busybox and bash. They also use stat, readlink, cat, head, mv, ln, rm, mkdir, rmdir, chmod, chown,
// sync, date, id and uname (coreutils or busybox), base64 and sha256sum (or openssl instead of either), and /proc. Some requests
// also use df, systemctl or sudo.
//
// A request is one line, `ID LENGTH COMMAND`, followed by LENGTH bytes of base64. The bytes stay in a shell variable and are
// written with the builtin echo, so a secret never appears in an argument, the environment or another file. Lines with the
// session's mark frame an answer, so output of a login profile is ignored. The line `bye`, or the end of the input (Ctrl-C, a
// lost connection), ends every process that the session started.

/** Reads the length of the script, then the script, and runs it. It is short and simple because any login shell may read it. */
export const bootstrap = 'IFS= read -r n && eval "$(head -c "$n")"'

/** Returns the script for a session whose answers have this mark. */
export function nodeScript(mark: string): string {
  return `K=${mark}\n${script}`
}

const prelude = `
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH
unset CDPATH
umask 077
nl='
'
`

/** Digests and error handling. A separate script can redefine kc_fail after it. */
const tools = `
if command -v base64 >/dev/null; then
  kc_encode() { base64; }
  kc_decode() { base64 -d; }
else
  kc_encode() { openssl base64; }
  kc_decode() { openssl base64 -d; }
fi
if command -v sha256sum >/dev/null; then
  kc_sum() { h=$(sha256sum) && echo "\${h%% *}"; }
else
  kc_sum() { h=$(openssl dgst -sha256 -r) && echo "\${h%% *}"; }
fi
case $(date +%N) in *[!0-9]* | '') kc_now=+%s ;; *) kc_now=+%s.%N ;; esac
case $(stat -c %.3Y / 2>/dev/null) in *[!0-9.]* | '') kc_mtime=%Y ;; *) kc_mtime=%.3Y ;; esac

kc_input() { [ -z "$D" ] || echo "$D" | kc_decode; }
kc_block() { echo "$1"; kc_encode; echo .; }

# Ends the request: what failed, and what was said of it.
kc_fail() { printf '%s' "$2" | kc_block "fail $1"; exit 9; }
kc_try() { w=$1; shift; m=$("$@" 2>&1) || { kc_barred "$@" && w=refused; kc_fail $w "$m"; }; }

# COMMAND ARGUMENT...: true where it fails for want of rights. What fails for root does not: a file may be immutable.
kc_barred() {
  [ "$(id -u)" != 0 ] || return 1
  case $1 in chown) return 0 ;; mv) kc_locked "$3" && return 0 ;; esac
  for p; do :; done
  kc_locked "$p"
}

# PATH: true where this user may not make, replace or remove it, by the folder above it that is there.
kc_locked() {
  p=/\${1#/}
  while p=\${p%/*}; [ "$p" ] && [ ! -d "$p" ]; do :; done
  set -- "$1" "\${p:-/}"
  [ ! -w "$2" ] || [ ! -x "$2" ] || { [ -k "$2" ] && [ -e "$1" ] && [ ! -O "$1" ] && [ ! -O "$2" ]; }
}

# A tool that knows no file operand makes everything durable.
kc_sync() { sync "$1" 2>/dev/null || sync; }

`

const reading = `
# True when nothing of that name is there; false when a folder above it cannot be searched.
kc_absent() {
  p=$1
  while :; do
    p=\${p%/*}
    [ "$p" ] || return 0
    if [ -d "$p" ]; then [ -x "$p" ]; return; fi
  done
}

kc_open() {
  set -- "$1" $(stat -L -c "%f %u %g %s $kc_mtime" /proc/self/fd/5)
  echo "stat $2 $3 $4 $5 $6"
  if [ "$1" = sum ]; then echo "sum $(kc_sum <&5)"
  elif [ "$5" -gt "$1" ]; then echo 'error larger than kcert reads'
  else kc_block data <&5; fi
}

# PATH...: as kc_read stat, with one process for all files instead of one or three for each. False when a file was gone in between.
kc_stats() {
  n=$# there= i=0
  for f; do if [ -e "$f" ]; then there=\${there}y; set -- "$@" "$f"; else there=\${there}n; fi; done
  S=$(shift $n; [ $# -eq 0 ] || exec stat -L -c "%f %u %g %s $kc_mtime" "$@" 2>/dev/null) || return 1
  M=$(shift $n; [ $# -eq 0 ] || exec stat -c $kc_mtime "$@" 2>/dev/null) || return 1
  for f; do
    [ $i -lt $n ] || break
    echo "file $i"; i=$((i + 1)) s= m=
    case $there in y*) read -r s <&6; read -r m <&7 ;; esac
    there=\${there#?}
    if [ -L "$f" ]; then
      printf 'link %s\\n' "$(readlink "$f")"
      if [ "$m" ]; then echo "linked $m"; else stat -c "linked $kc_mtime" "$f"; fi
    fi
    if [ "$s" ]; then echo "stat $s"
    elif ! kc_absent "$f"; then echo 'error this user may not search its folder'; fi
  done 6<<KC_S 7<<KC_M
$S
KC_S
$M
KC_M
  return 0
}

# LIMIT|sum|stat PATH...
kc_read() {
  want=$1; shift
  if [ "$want" = stat ] && kc_stats "$@"; then return; fi
  i=0
  for f; do
    echo "file $i"; i=$((i + 1))
    [ -L "$f" ] && { printf 'link %s\\n' "$(readlink "$f")"; stat -c "linked $kc_mtime" "$f"; }
    if [ -e "$f" ]; then
      # Nothing but a file is opened: a FIFO would wait for its writer.
      if [ "$want" = stat ] || [ ! -f "$f" ]; then stat -L -c "stat %f %u %g %s $kc_mtime" "$f"
      elif [ ! -r "$f" ]; then echo 'error this user may not read it'
      else { kc_open "$want"; } 5<"$f"; fi
    elif ! kc_absent "$f"; then echo 'error this user may not search its folder'; fi
  done
  return 0
}

# FOLDER
kc_list() {
  d=$1
  if [ ! -e "$d" ]; then kc_absent "$d" && echo absent || echo unreadable; return 0; fi
  [ -d "$d" ] || { echo not-a-folder; return 0; }
  [ -r "$d" ] && [ -x "$d" ] || { echo unreadable; return 0; }
  echo folder
  set --
  for f in "$d"/* "$d"/.[!.]* "$d"/..?*; do
    case $f in *"$nl"*) continue ;; esac
    [ -e "$f" ] || [ -L "$f" ] || continue
    set -- "$@" "$f"
  done
  [ $# -eq 0 ] && return
  stat -c "entry %f %u %g %s $kc_mtime %n" "$@"
  for f; do [ -L "$f" ] && printf 'link %s\\nto %s\\n' "$f" "$(readlink "$f")"; done
  return 0
}

# PATTERN...
kc_match() {
  IFS=
  for p; do
    for f in $p; do
      case $f in *"$nl"*) continue ;; esac
      [ -e "$f" ] || [ -L "$f" ] || continue
      printf 'path %s\\n' "$f"
    done
  done
  return 0
}

# PROGRAM ARGUMENT...
kc_run() {
  echo stdout
  e=$( { { kc_input | ( exec "$@" 3>&- 5>&- ); printf '\\n%s' "$?" >&2; } | kc_encode >&3; } 2>&1 )
  echo .
  printf '%s' "\${e%"$nl"*}" | kc_block stderr
  echo "status \${e##*"$nl"}"
}

`

/**
 * Each function replaces only the expected content, or does nothing. New content comes from standard input's variable or a file.
 */
const writing = `
kc_state() {
  if [ -L "$1" ]; then S="link:$(readlink "$1")"
  elif [ -f "$1" ]; then S=sum:$(kc_sum <"$1")
  elif [ -e "$1" ]; then S=other
  else S=absent; fi
}

# PATH EXPECTED: goes on only where that is so.
kc_holds() {
  [ "$2" = any ] && return
  kc_state "$1"
  case $2,$S in sum:*,link:*) [ -f "$1" ] && S=sum:$(kc_sum <"$1") ;; esac
  [ "$S" = "$2" ] || kc_fail changed "$S"
}

kc_split() {
  d=\${1%/*}; d=\${d:-/}
  t=\${d%/}/.kcert.$2.kcert-tmp
  [ -d "$d" ] || kc_fail no-folder "$d"
}

# A shell that was killed may have left one, with a key in it.
kc_sweep() {
  for s in "$1"/.kcert.*.kcert-tmp; do
    [ -e "$s" ] && find "$1/" -maxdepth 1 -name '.kcert.*.kcert-tmp' -mmin +10 -exec rm -rf {} +
    return 0
  done
}

kc_changed() { kc_fail changed "$([ "$1" = absent ] && echo absent || echo "sum:$1")"; }

# With noclobber the shell makes the file or fails; by the umask it is 0600 until all is in it.
kc_create() { set -C; : >"$1"; }

# PATH NONCE EXPECTED SHA256 MODE|'' UID:GID|'' FROM|'': writes the new content to a file $t beside the file $f. $t is empty when
# there is nothing to change.
kc_stage() {
  f=$1 nonce=$2 want=$3 new=$4 mode=$5 own=$6 from=$7 om= ou= cur=absent
  case $want in link:*) kc_holds "$f" "$want"; want=any ;; esac
  if [ -L "$f" ]; then f=$(readlink -f "$f"); [ "$f" ] || kc_fail dangling "$1"; fi
  kc_split "$f" "$nonce"
  if [ -f "$f" ]; then
    [ -r "$f" ] || kc_fail refused 'this user may not read it'
    cur=$(kc_sum <"$f")
    set -- $(stat -c '%a %u:%g' "$f"); om=$1 ou=$2
  elif [ -e "$f" ]; then kc_fail not-a-file "$f"; fi
  case $want in
    any) ;;
    absent) [ $cur = absent ] || [ $cur = $new ] || kc_changed $cur ;;
    *) [ "sum:$cur" = "$want" ] || [ $cur = $new ] || kc_changed $cur ;;
  esac
  if [ $cur = $new ] && [ "\${mode:-$om}" = $om ] && [ "\${own:-$ou}" = $ou ]; then t=; return; fi
  kc_sweep "$d"
  trap 'rm -rf "$t" "$k" "$b"' EXIT
  trap 'exit 9' HUP INT TERM
  kc_try create kc_create "$t"
  mine=$(stat -c %u:%g "$t"); own=\${own:-\${ou:-$mine}}
  [ $own = $mine ] || kc_try chown chown $own "$t"
  if [ -e /sys/fs/selinux/enforce ] && [ "$om" ]; then chcon --reference="$f" "$t" 2>/dev/null; fi
  if [ "$from" ]; then m=$(cat "$from" 2>&1 >"$t"); else m=$(kc_input 2>&1 >"$t"); fi ||
    { [ -r "\${from:-/}" ] && w=content || w=refused; kc_fail $w "$m"; }
  kc_try chmod chmod \${mode:-\${om:-600}} "$t"
  kc_sync "$t"
  got=$(kc_sum <"$t")
  [ "$got" = $new ] || kc_fail cut "$got"
}

# Goes on only where the file did not change during kc_stage.
kc_still() {
  [ $want = any ] && return
  again=$( [ -f "$f" ] && kc_sum <"$f" || echo absent )
  [ "$again" = $cur ] || kc_changed "$again"
}

kc_wrote() {
  trap - EXIT
  [ ! "$t$k" ] || kc_sync "$d"
  printf '%s %s\\npath %s\\n' $([ "$t" ] && echo wrote || echo same) $cur "$f"
}

# As kc_stage, and puts the file in place.
kc_write() {
  k= b=
  kc_stage "$@"
  if [ ! "$t" ]; then :
  elif [ $want = absent ] && [ $cur = absent ]; then
    # Unlike a rename, a link fails if another process was quicker.
    if ln "$t" "$f" 2>/dev/null; then rm -f "$t"
    elif [ -e "$f" ]; then kc_changed "$(kc_sum <"$f")"
    else kc_try rename mv -fT "$t" "$f"; fi
  else
    kc_still
    kc_try rename mv -fT "$t" "$f"
  fi
  kc_wrote
}

# KEY EXPECTED SHA256 FROM|'' and the words of kc_write. The input is the private key, a dash, and its certificate. Programs read both for
# each new connection, so one mv renames both: the key first, because a run that finds the new certificate considers the pair done.
kc_write_pair() {
  all=$D k= b=
  D=\${all%%-*}
  kc_stage "$1" "$6k" "$2" "$3" '' '' "$4"
  k=$t kf=$f kd=$d
  shift 4
  D=\${all#*-}
  kc_stage "$@"
  [ "$kf" != "$f" ] || kc_fail one-file "$f"
  kc_still
  if [ "$k" ] && [ "$t" ] && [ "$kd" = "$d" ]; then
    b=$d/.kcert.$2b.kcert-tmp
    kc_try create mkdir "$b"
    kc_try rename mv -fT "$k" "$b/\${kf##*/}"
    kc_try rename mv -fT "$t" "$b/\${f##*/}"
    kc_try rename mv -f "$b/\${kf##*/}" "$b/\${f##*/}" "$d/"
    rmdir "$b"
  else
    [ ! "$k" ] || kc_try rename mv -fT "$k" "$kf"
    [ ! "$t" ] || kc_try rename mv -fT "$t" "$f"
  fi
  [ ! "$k" ] || kc_sync "$kd"
  kc_wrote
}

# PATH NONCE TARGET EXPECTED
kc_link() {
  kc_state "$1"
  [ "$S" = "link:$3" ] && { echo same; return; }
  kc_split "$1" "$2"
  [ -d "$1" ] && [ ! -L "$1" ] && kc_fail not-a-file "$1"
  kc_holds "$1" "$4"
  if [ "$4" = absent ]; then kc_try link ln -s -- "$3" "$1"
  else
    trap 'rm -f "$t"' EXIT
    trap 'exit 9' HUP INT TERM
    kc_try link ln -s -- "$3" "$t"
    kc_try rename mv -fT "$t" "$1"
    trap - EXIT
  fi
  kc_sync "$d"
  echo wrote
}

# PATH EXPECTED
kc_remove() {
  [ -e "$1" ] || [ -L "$1" ] || { echo absent; return; }
  [ -d "$1" ] && [ ! -L "$1" ] && kc_fail not-a-file "$1"
  kc_holds "$1" "$2"
  kc_try remove rm -f "$1"
  d=\${1%/*}; kc_sync "\${d:-/}"
  echo removed
}

# PATH MODE
kc_mkdir() {
  [ -d "$1" ] && return
  umask 022
  kc_try create mkdir -p "\${1%/*}/"
  kc_try create mkdir -m "$2" "$1"
  kc_sync "\${1%/*}/"
}

# PATH
kc_rmdir() {
  [ -d "$1" ] || { echo absent; return; }
  kc_try remove rmdir "$1"
  kc_sync "\${1%/*}/"
  echo removed
}

`

/** Facts about processes. */
const processes = `
# NAME..., as /proc/PID/comm has them: the first 15 characters
kc_processes() {
  echo "now $(date $kc_now)"
  read -r up _ </proc/uptime; echo "uptime $up"
  echo "hz $(getconf CLK_TCK 2>/dev/null || echo 100)"
  for p in /proc/[0-9]*; do
    c=; { IFS= read -r c <"$p/comm"; } 2>/dev/null
    for n; do
      [ "$n" = "$c" ] || continue
      s=; { IFS= read -r s <"$p/stat"; } 2>/dev/null
      [ "$s" ] || continue
      echo "process $s"
      { kc_block argv <"$p/cmdline"; } 2>/dev/null
    done
  done
  return 0
}

# PROC: what sets a feature gate of client-go in a process, or that it cannot be read.
kc_settings() {
  f= c= take=
  [ -r "$1/environ" ] && [ -r "$1/cmdline" ] || echo unread
  tr '\\0' '\\n' <"$1/environ" | grep -a '^KUBE_FEATURE_ClientsAllowCARotation='
  while IFS= read -r w; do
    case $take in features) echo "--feature-gates=$w" ;; config) c=$w ;; esac
    take=
    case $w in
      --feature-gates=* | -feature-gates=*) echo "$w" ;;
      --feature-gates | -feature-gates) take=features ;;
      --config=* | -config=*) c=\${w#*=} ;;
      --config | -config) take=config ;;
    esac
  done <<KC_W
$(tr '\\0' '\\n' <"$1/cmdline")
KC_W
  [ "$c" ] || return 0
  grep -a -E 'ClientsAllowCARotation|AllBeta' "$1/root$c"
  [ $? -le 1 ] || echo unread
}

# PROC UID/UID...: processes of pods, each by its UID with "-" and with "_". A program is searched once, however many run it.
kc_pods() {
  P=$1 searched=' '; shift
  read -r up _ <"$P/uptime"; echo "uptime $up"
  echo "hz $(getconf CLK_TCK 2>/dev/null || echo 100)"
  for p in "$P"/[0-9]*; do
    g=; { while IFS= read -r l; do g="$g $l"; done <"$p/cgroup"; } 2>/dev/null
    for u; do
      case $g in *"pod\${u%/*}"* | *"pod\${u#*/}"*) ;; *) continue ;; esac
      s=; { IFS= read -r s <"$p/stat"; } 2>/dev/null
      [ "$s" ] || continue
      echo "process $s"
      echo "pod \${u%/*}"
      echo "group$g"
      { while IFS= read -r l; do case $l in NSpid:*) echo "nspid \${l#NSpid:}" ;; esac; done <"$p/status"; } 2>/dev/null
      { kc_settings "$p" | head -c 4000 | kc_block settings; } 2>/dev/null
      i=$(stat -L -c %d:%i "$p/exe" 2>/dev/null) || continue
      echo "exe $i"
      case $searched in *" $i "*) continue ;; esac
      searched="$searched$i "
      # Go writes its build info into every program, stripped ones too. What is no text is in no line of it.
      { timeout 10 grep -a -A1 -E '^dep[[:space:]]+k8s\\.io/client-go[[:space:]]' "$p/exe"; echo "status $?"; } 2>/dev/null |
        tr -cd '\\11\\12\\40-\\176' | cut -c 1-200 | tail -n 41 | kc_block build
    done
  done
  return 0
}

`

const session = `
kc_identity() {
  echo "uid $(id -u)"
  echo "hostname $(uname -n)"
  b=; { read -r b </proc/sys/kernel/random/boot_id; } 2>/dev/null; echo "boot $b"
  if sudo -n true 2>/dev/null; then echo sudo; fi
  return 0
}

kc_clock() { echo "now $(date $kc_now)"; }

# Every process below this shell, found repeatedly until there are no more.
kc_below() {
  a=" $$ " more=1
  while [ $more ]; do
    more=
    for f in /proc/[0-9]*/stat; do
      s=; { read -r s <"$f"; } 2>/dev/null
      case $a in *" \${s%% *} "*) continue ;; esac
      set -- \${s##*) }
      case $a in *" \${2:-none} "*) a="$a\${s%% *} " more=1 ;; esac
    done
  done
  echo "\${a#" $$ "}"
}

# PID...: true while one of them runs; one that is dead and not yet waited for does not.
kc_run_on() {
  for p; do
    s=; { read -r s <"/proc/$p/stat"; } 2>/dev/null
    case \${s##*) } in '' | Z*) ;; *) return 0 ;; esac
  done
  return 1
}

# PID...: returns when none of them runs any more, or after 2 s.
kc_await() {
  i=0
  while [ $i -lt 20 ] && kc_run_on "$@"; do sleep 0.1 2>/dev/null || sleep 1; i=$((i + 1)); done
}

kc_end() {
  [ "$J" ] && kc_run_on $J || return
  # A write is nearly done, and tidies up after itself when its content was cut off.
  case $last in kc_run*) ;; *) kc_await $J ;; esac
  a=$(kc_below)
  kill -TERM $a 2>/dev/null
  kc_await $a
  kill -KILL $a 2>/dev/null
}

missing=
for c in stat readlink cat head mv ln rm mkdir rmdir chmod chown sync date id uname; do
  command -v $c >/dev/null || missing="$missing $c"
done
command -v base64 >/dev/null || command -v openssl >/dev/null || missing="$missing base64"
command -v sha256sum >/dev/null || command -v openssl >/dev/null || missing="$missing sha256sum"
[ "$(command -v echo)" = echo ] || missing="$missing echo-as-a-builtin"
[ -r /proc/self/stat ] || missing="$missing /proc"
printf '\\n@%s begin 0\\nmissing%s\\n@%s end 0 0\\n' $K "$missing" $K >&3

J=
while IFS=' ' read -r id length request; do
  case $id in bye) break ;; "") continue ;; esac
  [ "$J" ] && wait "$J"
  last=$request D=
  [ "$length" = 0 ] || D=$(head -c "$length")
  (
    printf '\\n@%s begin %s\\n' $K $id
    ( eval "$request" )
    printf '@%s end %s %s\\n' $K $id $?
  ) </dev/null >&3 &
  J=$!
  D=
done
kc_end
exit 0
`

/**
 * The functions for a script that an operator runs on a node: kc_write, kc_link, kc_remove, kc_mkdir and kc_rmdir, as in a
 * session.
 */
export const fileFunctions = `${prelude}${tools}${writing}`

const script = `${prelude}exec 3>&1 1>&2
${tools}${reading}${writing}${processes}${session}`

/** kc_pods, for a test that runs it on its own files. */
export const processFunctions = `${prelude}${tools}${processes}`
