import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { table } from './docs/page.ts'
import {
  createDebian,
  tryDebInstalled,
  tryNpmInstalled,
  tryRpmInstalled,
  tryScriptInstalled,
} from './release/clean-debian.ts'
import { readRelease } from './release/contents.ts'
import { tryFormula, tryKrewManifest } from './release/index-trials.ts'
import { launcherOf } from './release/node.ts'
import {
  serve,
  tryArchives,
  tryArm64,
  tryChecksums,
  tryDebUnpacked,
  tryImage,
  tryInstallScript,
  tryLintian,
  tryManPages,
  tryNpmPackage,
  trySignature,
} from './release/trials.ts'

// `npm run rehearse-release [-- --write] [--out DIR | --files DIR]`: follows RELEASING.md as far as possible without an account.
// It builds all files of a release and uses each as a new user would. Steps that need a missing program are skipped by name. The
// machine is not changed: packages are installed in a new Debian in a temporary folder. --write writes the table of files into
// RELEASING.md, and --out keeps the files. --files uses the files of an earlier build instead of building them.

const folder = mkdtempSync(join(tmpdir(), 'kcert-rehearsal-'))
const { values } = parseArgs({
  options: { write: { type: 'boolean' }, out: { type: 'string' }, files: { type: 'string' } },
})
const files = resolve(values.files ?? values.out ?? join(folder, 'files'))
const say = (what: string): void => void process.stdout.write(`${what}\n`)
const started = Date.now()
let skipped = 0
let failed = 0

const has = (program: string): boolean => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0
const need = (...programs: string[]): string | undefined => {
  const absent = programs.filter((one) => !has(one))
  return absent.length === 0 ? undefined : `not installed: ${absent.join(', ')}`
}
const root = process.geteuid?.() === 0 ? undefined : 'it needs root, for chroot'

try {
  const key = join(folder, 'signer')
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'rehearsal', '-f', key])
  if (values.files === undefined) {
    const flags = ['--url', 'https://releases.example.test/kcert', '--out', files]
    execFileSync(process.execPath, ['scripts/release.ts', ...flags], { stdio: 'inherit' })
    say(`built in ${seconds()} s`)
  }
  await trial('checksums', undefined, () => tryChecksums(files))
  await trial('signature', undefined, (own) => trySignature(files, own, key))
  await trial('npm package', undefined, (own) => tryNpmPackage(files, own))
  await trial('install.sh', undefined, (own) => tryInstallScript(files, own))
  await trial('archives', need('unzip'), (own) => tryArchives(files, own))
  await trial('krew.yaml', undefined, (own) => tryKrewManifest(files, own))
  await trial('kcert.rb', need('ruby'), (own) => tryFormula(files, own))
  await trial('.deb, unpacked', undefined, (own) => tryDebUnpacked(files, own))
  await trial('image', root ?? need('chroot'), (own) => tryImage(files, own))
  await trial('man pages', need('mandoc', 'man'), (own) => tryManPages(files, own))
  await trial('arm64', launcherOf('arm64') ? undefined : need('qemu-aarch64-static'), (own) =>
    tryArm64(files, own),
  )
  await trial('lintian', need('lintian'), () => tryLintian(files))
  const archive = readdirSync(files).find((name) => name.endsWith('.tgz')) ?? ''
  await trial('npm publish', undefined, async () => {
    execFileSync('npm', ['publish', '--dry-run', '--ignore-scripts', join(files, archive)], {
      stdio: 'ignore',
    })
    return 'npm publish --dry-run'
  })
  const noDebian = root ?? need('debootstrap', 'chroot')
  const { url, server } = await serve(files)
  const debian = { root: join(folder, 'debian'), url, files }
  const noArm64 = noDebian ?? need('qemu-aarch64-static')
  const noRpm = noDebian ?? need('rpm', 'rpmbuild')
  if (noDebian === undefined) {
    createDebian(debian.root)
    say(`a clean Debian 12 (${seconds()} s)`)
  }
  await trial('.deb for amd64, installed', noDebian, () => tryDebInstalled(debian, 'x64'))
  await trial('install.sh, installed', noDebian, () => tryScriptInstalled(debian))
  await trial('npm package, installed', noDebian, () => tryNpmInstalled(debian))
  await trial('.rpm for x86_64, installed', noRpm, () => tryRpmInstalled(debian, 'x64'))
  await trial('.deb for arm64, installed', noArm64, () => tryDebInstalled(debian, 'arm64'))
  await trial('.rpm for aarch64, installed', noRpm ?? noArm64, () => tryRpmInstalled(debian, 'arm64'))
  server.close()
  if (values.write && failed === 0) writeTable()
  say(`${failed} failed, ${skipped} skipped, ${seconds()} s`)
  process.exitCode = failed === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true })
}

function seconds(): number {
  return Math.round((Date.now() - started) / 1000)
}

async function trial(
  name: string,
  missing: string | undefined,
  run: (folder: string) => Promise<string>,
): Promise<void> {
  if (missing !== undefined) {
    skipped++
    say(`skipped  ${name}: ${missing}`)
    return
  }
  const own = join(folder, `trial-${name.replaceAll(/\W+/g, '-')}`)
  mkdirSync(own)
  try {
    say(`ok  ${await run(own)} (${seconds()} s)`)
  } catch (error) {
    failed++
    say(`FAILED  ${name}: ${(error as Error).message}`)
  }
}

function writeTable(): void {
  const rows = readdirSync(files)
    .sort()
    .map((name) => {
      const { size } = statSync(join(files, name))
      return [
        `\`${name}\``,
        size.toLocaleString('en-US'),
        size < 1 << 20 ? '' : (size / (1 << 20)).toFixed(1),
      ]
    })
  const text = `One build, rehearsed on ${new Date().toISOString().slice(0, 10)}: version ${readRelease().version}, Node.js ${process.version}. On disk, the executable takes ${executableSize('amd64')} for amd64 and ${executableSize('arm64')} for arm64.\n\n${table(['file', 'bytes', 'MiB'], rows)}`
  const page = readFileSync('RELEASING.md', 'utf8')
  const marks = /(<!-- release-files -->)[\s\S]*?(<!-- \/release-files -->)/
  writeFileSync('RELEASING.md', page.replace(marks, `$1\n\n${text}\n\n$2`))
}

function executableSize(arch: string): string {
  const archive = `kcert-${readRelease().version}-linux-${arch}.tar.xz`
  const listed = execFileSync('tar', ['--list', '--verbose', '--file', join(files, archive)], {
    encoding: 'utf8',
  })
  const bytes = Number(/ (\d+) \S+ \S+ \S+\/bin\/kcert$/m.exec(listed)?.[1])
  return `${(bytes / (1 << 20)).toFixed(1)} MiB`
}
