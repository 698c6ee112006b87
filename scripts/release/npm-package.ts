import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Release, releasedManPages } from './contents.ts'

interface Manifest {
  readonly files: readonly string[]
  readonly [name: string]: unknown
}

/**
 * Builds the npm package in `target` and returns its file name. dist/ already bundles the other packages, so the package has no
 * dependencies, and `npm install` installs one package. `npm install --global` links its man pages.
 */
export function buildNpmPackage(release: Release, target: string, temporary: string): string {
  const folder = join(temporary, 'npm')
  const { scripts, dependencies, devDependencies, allowScripts, ...manifest } = JSON.parse(
    readFileSync('package.json', 'utf8'),
  ) as Manifest
  mkdirSync(folder, { recursive: true })
  for (const name of [...manifest.files, 'README.md', 'LICENSE'])
    cpSync(name, join(folder, name), { recursive: true })
  const pages = releasedManPages(release)
  mkdirSync(join(folder, 'man'))
  for (const [name, text] of pages) writeFileSync(join(folder, 'man', name), text)
  const published = {
    ...manifest,
    files: [...manifest.files, 'man'],
    man: [...pages.keys()].map((name) => `man/${name}`),
  }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
  execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', target, folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return `kcert-${release.version}.tgz`
}
