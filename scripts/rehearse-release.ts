import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { table } from './docs/page.ts'
import { readRelease } from './release/contents.ts'
import { launcherOf } from './release/node.ts'
import {
  tryArchives,
  tryArm64,
  tryChecksums,
  tryDebInstalled,
  tryDebUnpacked,
  tryInstallScript,
  tryLintian,
  tryManPages,
  tryNpmPackage,
  tryRpmInstalled,
  trySignature,
} from './release/trials.ts'

// `npm run rehearse-release [-- --write] [--out DIR]`: RELEASING.md as far as a machine without an account can do it. It builds all files of a release,
// and uses each as a new user would. What needs a program that is not installed is skipped by name. The machine is not changed:
// packages are installed in a new Debian in a temporary folder. --write writes the table of files into RELEASING.md,
// and --out keeps the files.

const folder = mkdtempSync(join(tmpdir(), 'kcert-rehearsal-'))
const { values } = parseArgs({ options: { write: { type: 'boolean' }, out: { type: 'string' } } })
const files = resolve(values.out ?? join(folder, 'files'))
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
  execFileSync('ssh-keygen', [
    '-q',
    '-t',
    'ed25519',
    '-N',
    '',
    '-C',
    'rehearsal',
    '-f',
    join(folder, 'signer'),
  ])
  const flags = [
    '--url',
    'https://releases.example.test/kcert',
    '--sign-key',
    join(folder, 'signer'),
    '--out',
    files,
  ]
  execFileSync(process.execPath, ['scripts/release.ts', ...flags], { stdio: 'inherit' })
  say(`built in ${seconds()} s`)
  const clean = join(folder, 'debian')
  const noDebian = root ?? need('debootstrap', 'chroot')
  if (noDebian === undefined) {
    const packages = '--include=man-db,libstdc++6,ca-certificates'
    execFileSync('debootstrap', ['--variant=minbase', packages, 'bookworm', clean], { stdio: 'ignore' })
    say(`a clean Debian 12 (${seconds()} s)`)
  }
  await trial('checksums', undefined, () => tryChecksums(files))
  await trial('signature', undefined, (own) => trySignature(files, own, join(folder, 'signer.pub')))
  await trial('npm package', undefined, (own) => tryNpmPackage(files, own))
  await trial('install.sh', undefined, (own) => tryInstallScript(files, own))
  await trial('archives', need('unzip'), (own) => tryArchives(files, own))
  await trial('.deb, unpacked', undefined, (own) => tryDebUnpacked(files, own))
  await trial('.deb, installed', noDebian, () => tryDebInstalled(files, clean))
  await trial('.rpm, installed', noDebian ?? need('rpm'), () => tryRpmInstalled(files, clean))
  await trial('man pages', need('mandoc'), (own) => tryManPages(files, own))
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
  if (values.write) writeTable()
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
  const text = `Rehearsed on ${new Date().toISOString().slice(0, 10)}, version ${readRelease().version}, Node.js ${process.version}:\n\n${table(['file', 'bytes', 'MiB'], rows)}`
  const page = readFileSync('RELEASING.md', 'utf8')
  const marks = /(<!-- release-files -->)[\s\S]*?(<!-- \/release-files -->)/
  writeFileSync('RELEASING.md', page.replace(marks, `$1\n\n${text}\n\n$2`))
}
