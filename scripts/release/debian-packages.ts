import { execFileSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Arch, archNames } from './node.ts'

// Debian's packages, downloaded and verified by apt, and unpacked without installing them.

export interface DebianPackage {
  readonly name: string
  readonly version: string
}

/** What the libraries of a program need not have: conversions of character sets, files for gdb and lintian. */
const unused = ['usr/lib/*/{gconv,audit}', 'usr/share/{gcc,gdb,lintian}', 'usr/share/doc/*/!(copyright)']

/**
 * Unpacks packages of an architecture below `root`, and the packages of their licenses. `etc` has the folder apt with the sources
 * and keys of a Debian: /etc of this machine, or that of a chroot. Returns what was unpacked.
 */
export function unpackDebian(
  names: readonly string[],
  arch: Arch,
  etc: string,
  root: string,
  temporary: string,
): DebianPackage[] {
  const system = readFileSync(join(etc, 'os-release'), 'utf8')
  if (!/^ID="?debian"?$/m.test(system))
    throw new Error(
      `${etc} is not that of a Debian: use a Debian machine, or --debian DIR with a chroot of one`,
    )
  const files = join(temporary, `debian-${arch}`)
  mkdirSync(join(files, 'state/lists/partial'), { recursive: true })
  mkdirSync(join(files, 'cache/archives/partial'), { recursive: true })
  writeFileSync(join(files, 'status'), '')
  // The machine may have sources of others.
  const pin = (release: string, priority: number): string =>
    `Package: *\nPin: release ${release}\nPin-Priority: ${priority}\n\n`
  writeFileSync(join(files, 'preferences'), pin('o=Debian', 990) + pin('*', -1))
  const settings = {
    'Dir::Etc': join(etc, 'apt'),
    'Dir::Etc::preferences': join(files, 'preferences'),
    'Dir::Etc::preferencesparts': join(files, 'cache'),
    'Dir::State': join(files, 'state'),
    'Dir::State::status': join(files, 'status'),
    'Dir::Cache': join(files, 'cache'),
    'APT::Architecture': archNames[arch].deb,
    'APT::Architectures': archNames[arch].deb,
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
  }
  const apt = (...words: string[]): void =>
    void execFileSync(
      'apt-get',
      ['-qq', ...Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]), ...words],
      { cwd: files, stdio: ['ignore', 'ignore', 'inherit'] },
    )
  apt('update')
  apt('download', ...names)
  // The license of libstdc++6 is in gcc-12-base.
  const bases = debs(files).flatMap((deb) => /\bgcc-\d+-base\b/.exec(field(deb, 'Depends')) ?? [])
  if (bases.length > 0) apt('download', ...new Set(bases))
  const unpacked = debs(files).map((deb): DebianPackage => {
    execFileSync('dpkg-deb', ['--extract', deb, root])
    const name = field(deb, 'Package')
    // Where scanners of images find the packages of an image without dpkg.
    mkdirSync(join(root, 'var/lib/dpkg/status.d'), { recursive: true })
    writeFileSync(join(root, 'var/lib/dpkg/status.d', name), execFileSync('dpkg-deb', ['--field', deb]))
    return { name, version: field(deb, 'Version') }
  })
  for (const path of globSync([...unused], { cwd: root }))
    rmSync(join(root, path), { recursive: true, force: true })
  mkdirSync(join(root, 'etc'), { recursive: true })
  copyFileSync(join(etc, 'os-release'), join(root, 'etc/os-release'))
  return unpacked
}

function debs(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.deb'))
    .sort()
    .map((name) => join(folder, name))
}

function field(deb: string, name: string): string {
  return execFileSync('dpkg-deb', ['--field', deb, name], { encoding: 'utf8' }).trim()
}
