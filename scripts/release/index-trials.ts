import { cpSync, globSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import * as v from 'valibot'
import { parse } from 'yaml'
import { sha256 } from './indexes.ts'
import { answers, fileIn, must } from './trials.ts'

// Tests of krew's manifest and Homebrew's formula, as far as possible without krew and Homebrew.

const text = v.pipe(v.string(), v.nonEmpty())

// krew's own validation: https://github.com/kubernetes-sigs/krew/blob/master/internal/index/validation/validate.go
const krewManifest = v.strictObject({
  apiVersion: v.literal('krew.googlecontainertools.github.com/v1alpha2'),
  kind: v.literal('Plugin'),
  metadata: v.strictObject({ name: v.pipe(v.string(), v.regex(/^[\w-]+$/)) }),
  spec: v.strictObject({
    version: v.pipe(v.string(), v.regex(/^v\d+\.\d+\.\d+(?:-[\w.]+)?$/)),
    homepage: v.pipe(v.string(), v.url()),
    shortDescription: v.pipe(text, v.maxLength(50)),
    description: text,
    platforms: v.pipe(
      v.array(
        v.strictObject({
          selector: v.strictObject({ matchLabels: v.strictObject({ os: v.literal('linux'), arch: text }) }),
          uri: v.pipe(v.string(), v.url()),
          sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
          files: v.pipe(v.array(v.strictObject({ from: text, to: v.literal('.') })), v.nonEmpty()),
          bin: text,
        }),
      ),
      v.nonEmpty(),
    ),
  }),
})

/**
 * Checks that the manifest has krew's format, and that each archive has its SHA-256 and the files of the manifest. The archive
 * for this machine runs as kubectl-kcert.
 */
export async function tryKrewManifest(files: string, folder: string): Promise<string> {
  const manifest = v.parse(krewManifest, parse(readFileSync(join(files, 'krew.yaml'), 'utf8')))
  let version = ''
  for (const platform of manifest.spec.platforms) {
    const { arch } = platform.selector.matchLabels
    const archive = join(files, basename(platform.uri))
    if (sha256(archive) !== platform.sha256) throw new Error(`krew.yaml has another SHA-256 of ${archive}`)
    const [unpacked, installed] = [join(folder, arch), join(folder, `installed-${arch}`)]
    mkdirSync(unpacked)
    mkdirSync(installed)
    await must('tar', ['-xf', archive, '-C', unpacked])
    for (const { from } of platform.files) {
      const found = globSync(from, { cwd: unpacked })
      if (found.length === 0) throw new Error(`${archive} has no ${from}`)
      for (const name of found) cpSync(join(unpacked, name), join(installed, basename(name)))
    }
    if (arch !== 'amd64') continue
    const plugin = join(folder, `kubectl-${manifest.metadata.name}`)
    symlinkSync(join(installed, platform.bin), plugin)
    version = await answers([plugin])
  }
  return `krew.yaml: valid, ${manifest.spec.platforms.length} archives as it says, ${version}`
}

/** Checks that Ruby loads the formula, that its `install` puts every file in its place, and that its `test` passes. */
export async function tryFormula(files: string, folder: string): Promise<string> {
  let version = ''
  const archs = { intel: 'amd64', arm: 'arm64' }
  for (const [arch, name] of Object.entries(archs)) {
    const unpacked = join(folder, arch)
    const prefix = join(folder, `prefix-${arch}`)
    mkdirSync(unpacked)
    const archive = fileIn(files, `kcert-*-linux-${name}.tar.xz`)
    await must('tar', ['-xf', archive, '-C', unpacked])
    const [top = ''] = readdirSync(unpacked)
    const words = [resolve('scripts/release/homebrew.rb'), join(files, 'kcert.rb'), arch, prefix]
    const printed = await must('ruby', words, join(unpacked, top))
    const [url = '', sum] = printed.trim().split('\n').slice(-2)
    if (basename(url) !== basename(archive) || sum !== sha256(archive))
      throw new Error(`kcert.rb has another URL or SHA-256 of ${archive}`)
    if (!readdirSync(join(prefix, 'share/man/man1')).includes('kcert.1'))
      throw new Error('kcert.rb installs no man page')
    if (arch === 'intel') version = await answers([join(prefix, 'bin/kcert')])
  }
  return `kcert.rb: loaded by Ruby, installs and tests, ${version}`
}
