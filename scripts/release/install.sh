#!/bin/sh
# Installs kcert @VERSION@ for Linux (glibc 2.28 or newer, amd64 or arm64), after it compared the archive's SHA-256 with the one below.
set -eu

usage() {
  cat <<'EOF'
Install kcert @VERSION@.

  sh install.sh [--from URL|DIR] [--prefix DIR]
  sh install.sh --uninstall [--prefix DIR]

  --from URL|DIR   where the archives of this release are (default: @URL@)
  --prefix DIR     install below this folder (default: /usr/local for root, else ~/.local)
  --uninstall      remove what this script installs
EOF
}

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

from='@URL@'
if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
action=install
while [ $# -gt 0 ]; do
  case $1 in
    --from | --prefix)
      [ $# -ge 2 ] || fail "$1 needs a value"
      if [ "$1" = --from ]; then from=$2; else prefix=$2; fi
      shift 2
      ;;
    --uninstall)
      action=uninstall
      shift
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) fail "unknown flag: $1" ;;
  esac
done

files='@FILES@'
record=share/kcert/created-folders

if [ "$action" = uninstall ]; then
  for file in $files; do rm -f "$prefix/$file"; done
  # Folders that this script created, the deepest first.
  if [ -f "$prefix/$record" ]; then
    folders=$(LC_ALL=C sort -r "$prefix/$record")
    rm -f "$prefix/$record"
    for folder in $folders; do rmdir "$prefix/${folder#.}" 2>/dev/null || :; done
  fi
  printf 'removed kcert from %s\n' "$prefix"
  exit 0
fi

[ "$(uname -s)" = Linux ] || fail "kcert's executable is for Linux; on $(uname -s) install the npm package kcert-@VERSION@.tgz"
case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "there is no executable for $(uname -m); install the npm package kcert-@VERSION@.tgz" ;;
esac
glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || fail "kcert's executable needs glibc 2.28 or newer; install the npm package kcert-@VERSION@.tgz"
oldest=$(printf '%s\n' 2.28 "${glibc#glibc }" | sort -V | head -n 1)
[ "$oldest" = 2.28 ] || fail "kcert's executable needs glibc 2.28 or newer, and this is $glibc"
if command -v xz >/dev/null; then kind=tar.xz; else kind=tar.gz; fi
case $arch.$kind in
@SUMS@
  *) fail "this release has no executable for $arch" ;;
esac
[ -n "$from" ] || fail 'set --from to the URL or folder of the archives'

name=kcert-@VERSION@-linux-$arch
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $from in
  http://* | https://*)
    if command -v curl >/dev/null; then
      curl -fsSL -o "$work/archive" "$from/$name.$kind" || fail "cannot download $from/$name.$kind"
    else
      wget -qO "$work/archive" "$from/$name.$kind" || fail "cannot download $from/$name.$kind"
    fi
    ;;
  *) cp "$from/$name.$kind" "$work/archive" || fail "cannot read $from/$name.$kind" ;;
esac
printf '%s  %s\n' "$sum" "$work/archive" | sha256sum -c - >/dev/null 2>&1 ||
  fail "$from/$name.$kind does not have the SHA-256 $sum; nothing was installed"
if [ "$kind" = tar.xz ]; then xz -dc <"$work/archive"; else gzip -dc <"$work/archive"; fi | tar -xf - -C "$work"

# Creates a folder below the prefix, and adds it to those that --uninstall removes.
create_folder() {
  if [ -d "$prefix/$1" ]; then return; fi
  if [ "$1" != . ]; then create_folder "$(dirname "$1")"; fi
  mkdir -p "$prefix/$1"
  created="$created$1
"
}
created=
create_folder "$(dirname "$record")"
for file in $files; do create_folder "$(dirname "$file")"; done
printf '%s' "$created" >>"$prefix/$record"
for file in $files; do
  # A copy beside the target and a rename: a kcert that is running keeps its file.
  cp -P "$work/$name/$file" "$prefix/$file.new"
  mv -f "$prefix/$file.new" "$prefix/$file"
done
printf 'installed %s\n' "$prefix/bin/kcert"
# shellcheck disable=SC2016 # $PATH is for the reader's shell.
case :$PATH: in
  *:"$prefix/bin":*) ;;
  *) printf 'add it to your PATH: export PATH="%s/bin:$PATH"\n' "$prefix" ;;
esac
