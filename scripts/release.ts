import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { buildArchives, writeTar } from './release/archives.ts'
import { readRelease } from './release/contents.ts'
import { buildDeb } from './release/debian.ts'
import { buildExecutable } from './release/executable.ts'
import { buildImage } from './release/image.ts'
import { sha256, writeFormula, writeInstallScript, writeKrewManifest } from './release/indexes.ts'
import { archNames, archOf, launcherOf } from './release/node.ts'
import { buildNpmPackage } from './release/npm-package.ts'
import { buildRpm } from './release/rpm.ts'
import { softwareBill } from './sbom.ts'

// `npm run release`: builds every file of a release in release/VERSION, without an account. RELEASING.md lists them. Flags: --url
// URL, the folder from which users download them (required for the krew manifest and the formula); --arch x64, one architecture
// only; --without rpm and --without image, for machines without rpmbuild or Debian's packages; --debian DIR, a chroot with Debian
// for the image; --quick, for tests: fast compression, so the files are larger; --out DIR.

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    arch: { type: 'string', multiple: true, default: ['x64', 'arm64'] },
    without: { type: 'string', multiple: true, default: [] },
    debian: { type: 'string', default: '/' },
    quick: { type: 'boolean', default: false },
    out: { type: 'string' },
  },
})
const MiB = 1024 * 1024
const limits = { download: 34 * MiB, disk: 125 * MiB }

const archs = values.arch.map(archOf)
const release = readRelease()
const target = resolve(values.out ?? `release/${release.version}`)
const compression = values.quick ? { xz: 0, gzip: 1 } : { xz: 6, gzip: 9 }
const published = { release, archs, target, url: values.url }
const temporary = mkdtempSync(join(tmpdir(), 'kcert-release-'))
const say = (what: string): void => void process.stdout.write(`${what}\n`)
try {
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  for (const arch of archs) {
    const executable = join(temporary, `kcert-${arch}`)
    await buildExecutable(arch, executable)
    // All later steps use the same dist/.
    process.env.KCERT_TEST_BUILT ??= '1'
    const { size } = statSync(executable)
    const code = launcherOf(arch) === undefined ? ', without compiled code: no qemu-aarch64-static' : ''
    say(`executable for ${archNames[arch].deb}: ${size} bytes (${(size / MiB).toFixed(1)} MiB)${code}`)
    if (size > limits.disk) throw new Error(`it is larger than ${limits.disk / MiB} MiB`)
    const parts = [executable, release, target, temporary, compression] as const
    buildArchives(arch, ...parts)
    buildDeb(arch, ...parts)
    if (!values.without.includes('rpm')) buildRpm(arch, ...parts)
  }
  buildNpmPackage(release, target, temporary)
  if (!values.without.includes('image')) {
    const layout = join(temporary, 'image')
    const etc = join(resolve(values.debian), 'etc')
    const { digest } = buildImage(
      { release, archs, target: layout, etc, gzipLevel: compression.gzip },
      temporary,
    )
    writeTar(join(target, `kcert-${release.version}-image.tar`), layout, readdirSync(layout).sort(), release)
    say(`image: ${digest}`)
  }
  const [arch = 'x64'] = archs
  const folder = `kcert-${release.version}-linux-${archNames[arch].deb}`
  writeInstallScript(published, join(temporary, `archive-${arch}`, folder))
  if (values.url !== undefined) {
    writeKrewManifest(published)
    writeFormula(published)
  }
  writeFileSync(join(target, 'kcert.cdx.json'), `${JSON.stringify(softwareBill(), null, 2)}\n`)
  const names = readdirSync(target).sort()
  const sums = names.map((name) => `${sha256(join(target, name))}  ${name}\n`)
  writeFileSync(join(target, 'SHA256SUMS'), sums.join(''))
  for (const name of readdirSync(target).sort()) {
    const { size } = statSync(join(target, name))
    say(`${String(size).padStart(9)}  ${name}`)
    if (!values.quick && /\.(?:deb|rpm|tar\.xz)$/.test(name) && size > limits.download)
      throw new Error(`${name} is larger than ${limits.download / MiB} MiB`)
  }
} finally {
  rmSync(temporary, { recursive: true })
}
