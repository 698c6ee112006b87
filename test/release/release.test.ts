import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { tryKrewManifest } from '../../scripts/release/index-trials.ts'
import {
  tryArchives,
  tryChecksums,
  tryDebUnpacked,
  tryInstallScript,
  tryNpmPackage,
} from '../../scripts/release/trials.ts'
import { temporaryFolder } from '../scripts/temporary-folder.ts'

// The files of a release for linux-x64, built once and each used as a new user would. `npm run rehearse-release` does the same
// for both architectures, and installs the packages in a clean Debian.

const isAbsent = (program: string): boolean => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0
const absent = ['dpkg-deb', 'readelf', 'strip', 'xz', 'zip', 'unzip'].filter(isAbsent)
const isOther = process.platform !== 'linux' || process.arch !== 'x64'
const reason = isOther
  ? 'not linux-x64'
  : absent.length > 0
    ? `not installed: ${absent.join(', ')}`
    : undefined

let folder = ''
let files = ''

beforeAll(() => {
  if (reason !== undefined) return
  folder = temporaryFolder('release')
  files = join(folder, 'files')
  const flags = [
    '--quick',
    '--arch',
    'x64',
    '--without',
    'rpm',
    '--without',
    'image',
    '--url',
    'https://releases.example.test/kcert',
  ]
  execFileSync(process.execPath, ['scripts/release.ts', ...flags, '--out', files], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}, 1_200_000)

function own(name: string): string {
  const path = join(folder, name)
  mkdirSync(path)
  return path
}

const title = (text: string): string => (reason === undefined ? text : `${text} (skipped: ${reason})`)
const when = test.skipIf(reason !== undefined)

when(title('SHA256SUMS lists every file'), async () => {
  expect(await tryChecksums(files)).toMatch(/^SHA256SUMS: \d+ files$/)
})

when(title('npm install -g brings one package, which answers'), async () => {
  expect(await tryNpmPackage(files, own('npm'))).toContain('one package, kcert/')
})

when(
  title('install.sh refuses a changed archive, installs from a server, and removes all of it'),
  async () => {
    expect(await tryInstallScript(files, own('script'))).toContain('a changed archive refused, kcert/')
  },
)

when(title('the .deb answers, and its man pages open'), async () => {
  expect(await tryDebUnpacked(files, own('deb'))).toContain('unpacked, kcert/')
})

when(title('the archives answer'), async () => {
  expect(await tryArchives(files, own('archives'))).toContain('each answers')
})

when(title('krew.yaml names an archive with the plugin'), async () => {
  expect(await tryKrewManifest(files, own('krew'))).toContain('valid, 1 archives as it says, kcert/')
})

when(title('the SBOM and the licenses are those of what is in the package'), () => {
  const bill = JSON.parse(readFileSync(join(files, 'kcert.cdx.json'), 'utf8')) as { components: unknown[] }
  expect(bill.components.length).toBeGreaterThan(10)
  expect(existsSync(join(folder, 'deb/usr/share/doc/kcert/THIRD-PARTY.txt.gz'))).toBe(true)
})
