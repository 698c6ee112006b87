import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// `npm run rehearse-release`: RELEASING.md as far as a machine without an account goes. It packs, installs what was packed as a user would,
// without install scripts, runs it, and signs and verifies with a key that is thrown away. Nothing leaves the machine.

const folder = mkdtempSync(join(tmpdir(), 'kcert-release-'))
const run = (program: string, args: readonly string[], cwd = folder): string =>
  execFileSync(program, args, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
const say = (what: string): void => void process.stdout.write(`ok  ${what}\n`)

try {
  const [packed] = JSON.parse(
    run('npm', ['pack', '--json', '--pack-destination', folder], process.cwd()),
  ) as [{ filename: string; files: { path: string }[] }]
  const strange = packed.files.filter(
    ({ path }) =>
      !/^(?:bin|dist|docs)\/|^(?:package\.json|oclif\.manifest\.json|README\.md|CHANGELOG\.md|LICENSE)$/.test(
        path,
      ),
  )
  if (strange.length > 0) throw new Error(`packed besides: ${strange.map(({ path }) => path).join(', ')}`)
  say(`packed ${packed.filename}: ${packed.files.length} files, none but bin, dist, docs and the papers`)

  run('npm', ['init', '-y'])
  run('npm', ['install', '--ignore-scripts', '--no-audit', '--prefer-offline', join(folder, packed.filename)])
  const version = run(process.execPath, ['node_modules/kcert/bin/run.js', '--version'])
  run(process.execPath, ['node_modules/kcert/bin/run.js', 'key', 'generate', '--out', 'a.key'])
  say(`installed without install scripts, and it runs: ${version.trim()}`)

  run('node', ['scripts/sbom.ts'], process.cwd())
  const sbom = readFileSync('dist/kcert.cdx.json')
  writeFileSync(join(folder, 'kcert.cdx.json'), sbom)
  const names = [packed.filename, 'kcert.cdx.json']
  const sums = names.map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')}  ${name}\n`,
  )
  writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''))
  run('sha256sum', ['--check', 'SHA256SUMS'])
  say('SHA256SUMS of package and SBOM')

  run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'rehearsal', '-f', 'signer'])
  run('ssh-keygen', ['-Y', 'sign', '-f', 'signer', '-n', 'kcert-release', 'SHA256SUMS'])
  writeFileSync(
    join(folder, 'allowed_signers'),
    `rehearsal namespaces="kcert-release" ${readFileSync(join(folder, 'signer.pub'), 'utf8')}`,
  )
  const verify = (): boolean => {
    const args = [
      '-Y',
      'verify',
      '-f',
      'allowed_signers',
      '-I',
      'rehearsal',
      '-n',
      'kcert-release',
      '-s',
      'SHA256SUMS.sig',
    ]
    return (
      spawnSync('ssh-keygen', args, { cwd: folder, input: readFileSync(join(folder, 'SHA256SUMS')) })
        .status === 0
    )
  }
  if (!verify()) throw new Error('the signature does not verify')
  appendFileSync(join(folder, 'SHA256SUMS'), 'x')
  if (verify()) throw new Error('a changed file verifies')
  say('signed with a key that is thrown away; verified, and refused once a character was changed')

  run('npm', ['publish', '--dry-run', '--ignore-scripts', join(folder, packed.filename)])
  say('npm publish --dry-run')
} finally {
  rmSync(folder, { recursive: true })
}
