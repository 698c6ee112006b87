import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { clampTimes, type Release, thirdPartyLicenses, writeContents } from './contents.ts'
import { type Arch, archNames } from './node.ts'

/** Compression levels of xz, and of gzip and zip. */
export interface Compression {
  readonly xz: number
  readonly gzip: number
}

/** Writes entries of a folder to a tar file, sorted by name, with the owner root and the time of the release. */
export function writeTar(tar: string, folder: string, entries: readonly string[], { date }: Release): void {
  execFileSync('tar', [
    ...['--create', '--file', tar, '--directory', folder, '--sort=name', '--format=ustar'],
    ...['--owner=0', '--group=0', '--numeric-owner', `--mtime=@${date.getTime() / 1000}`, ...entries],
  ])
}

/**
 * Builds the archives of an architecture in `target` and returns their file names. The .tar.xz is the smallest. krew reads only .tar.gz
 * and .zip, and install.sh takes the .tar.gz where there is no xz.
 */
export function buildArchives(
  arch: Arch,
  executable: string,
  release: Release,
  target: string,
  temporary: string,
  { xz, gzip }: Compression,
): string[] {
  const base = `kcert-${release.version}-linux-${archNames[arch].deb}`
  const parent = join(temporary, `archive-${arch}`)
  const folder = join(parent, base)
  mkdirSync(folder, { recursive: true })
  writeContents(executable, folder, release)
  copyFileSync('LICENSE', join(folder, 'LICENSE'))
  writeFileSync(join(folder, 'THIRD-PARTY.txt'), thirdPartyLicenses())
  clampTimes(folder, release)
  const tar = join(parent, `${base}.tar`)
  writeTar(tar, parent, [base], release)
  const out = (extension: string): string => join(target, `${base}.${extension}`)
  const shell = (command: string, ...args: string[]): void =>
    void execFileSync('sh', ['-c', command, 'sh', ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
  shell(`xz -${xz} --threads=2 --stdout "$1" > "$2"`, tar, out('tar.xz'))
  shell(`gzip -${gzip} --no-name --stdout "$1" > "$2"`, tar, out('tar.gz'))
  shell(
    `cd "$1" && rm -f "$3" && find "$2" | LC_ALL=C sort | TZ=UTC zip -q -X -y -${gzip} "$3" -@`,
    parent,
    base,
    out('zip'),
  )
  return ['tar.xz', 'tar.gz', 'zip'].map((extension) => `${base}.${extension}`)
}
