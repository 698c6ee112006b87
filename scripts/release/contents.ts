import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { manPages } from '../docs/man.ts'
import { installedPaths, nameOf, readLock } from '../lock.ts'
import { nodeFolder } from './node.ts'

// The content of every package of kcert, below its prefix: the executable, the links by which kubectl finds it, man pages,
// completions and licenses.

/** A release: the version of package.json, and the time of the last commit, so that two builds are identical. */
export interface Release {
  readonly version: string
  readonly date: Date
  readonly summary: string
}

/** Returns the release of this checkout. */
export function readRelease(): Release {
  const { version, description } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    version: string
    description: string
  }
  const seconds =
    process.env.SOURCE_DATE_EPOCH ??
    execFileSync('git', ['log', '-1', '--format=%ct'], { encoding: 'utf8' }).trim()
  return { version, summary: description, date: new Date(Number(seconds) * 1000) }
}

/** The version as Debian and RPM order it: a release candidate comes before the release. */
export function packageVersion({ version }: Release): string {
  return version.replace('-', '~')
}

const completions = {
  bash: 'share/bash-completion/completions/kcert',
  zsh: 'share/zsh/site-functions/_kcert',
  fish: 'share/fish/vendor_completions.d/kcert.fish',
}

// kubectl finds its plugin and the plugin's completion by these names.
const links = ['kubectl-kcert', 'kubectl_complete-kcert']

/** Writes the content of a package below `prefix`. Man pages are not compressed yet. */
export function writeContents(executable: string, prefix: string, release: Release): void {
  const write = (name: string, text: string): void => {
    mkdirSync(dirname(join(prefix, name)), { recursive: true })
    writeFileSync(join(prefix, name), text)
    chmodSync(join(prefix, name), 0o644)
  }
  mkdirSync(join(prefix, 'bin'), { recursive: true })
  copyFileSync(executable, join(prefix, 'bin/kcert'))
  chmodSync(join(prefix, 'bin/kcert'), 0o755)
  for (const name of links) symlinkSync('kcert', join(prefix, 'bin', name))
  for (const [name, text] of releasedManPages(release)) write(`share/man/man1/${name}`, text)
  for (const [shell, path] of Object.entries(completions))
    write(path, execFileSync(process.execPath, ['bin/run.js', 'completion', shell], { encoding: 'utf8' }))
}

/** Returns the man pages, by file name. Those of the links refer to kcert.1. */
export function releasedManPages({ version, date }: Release): Map<string, string> {
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
    commands: Parameters<typeof manPages>[0]
  }
  const { oclif } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    oclif: { topics: Parameters<typeof manPages>[1] }
  }
  const pages = manPages(commands, oclif.topics, version, date)
  for (const name of links) pages.set(`${name}.1`, '.so man1/kcert.1\n')
  return pages
}

/** Returns the licenses of Node.js and of the packages that dist/ contains. */
export function thirdPartyLicenses(): string {
  const packages = readLock()
  const parts = [...installedPaths(packages)].sort().map((path) => {
    const [file] = globSync(`${path}/{LICENSE,LICENCE,license,COPYING}*`)
    const { version, license = 'not stated' } = packages[path] ?? { version: '' }
    const text = file === undefined ? `License: ${license}\n` : readFileSync(file, 'utf8')
    return `${nameOf(path)} ${version}\n\n${text.trim()}\n`
  })
  const node = readFileSync(`${nodeFolder('x64')}/LICENSE`, 'utf8')
  return [`Node.js ${process.version}\n\n${node.trim()}\n`, ...parts].join(`\n${'-'.repeat(72)}\n\n`)
}

/** Gives every file and folder the time of the release, and its owner the right to write. */
export function clampTimes(folder: string, { date }: Release): void {
  const entries = globSync('**/*', { cwd: folder, withFileTypes: true })
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isSymbolicLink()) execFileSync('touch', ['-h', '-d', date.toISOString(), path])
    else utimesSync(path, date, date)
    if (entry.isDirectory()) chmodSync(path, 0o755)
  }
  utimesSync(folder, date, date)
}
