import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { installedPaths, type Locked, nameOf, readLock } from '../../scripts/lock.ts'
import { softwareBill } from '../../scripts/sbom.ts'

// The packages that a user installs with kcert, from the lock file. docs/dependencies.md counts and justifies them, and `npm run
// check` compares it with the lock file.

const packages = readLock()
const locked = Object.entries(packages).filter(([path]) => path !== '')
const paths = installedPaths(packages)
const installed = locked.filter(([path]) => paths.has(path))

/** Licenses that require only attribution. */
const free = [
  'MIT',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'BlueOak-1.0.0',
  'PSF-2.0',
  'Unlicense',
  'CC0-1.0',
]

test('packages installed with kcert have no install scripts', () => {
  expect(installed.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([])
})

test('packages installed with kcert have a permissive license', () => {
  // If there is a choice of licenses, one permissive license is enough.
  const isFree = (license = ''): boolean =>
    license
      .replaceAll(/[()]/g, '')
      .split(' OR ')
      .some((one) => free.includes(one))
  expect(installed.filter(([, { license }]) => !isFree(license)).map(([path]) => path)).toEqual([])
})

test('the lock file has the digest of every package that may be installed here, and no download address', () => {
  const isOfOtherPlatform = ({ dev, optional }: Locked): boolean => dev === true && optional === true
  const without = locked.filter(([, one]) => one.integrity === undefined && !isOfOtherPlatform(one))
  expect(without.map(([path]) => path)).toEqual([])
  expect(
    locked.filter(([, { integrity }]) => integrity !== undefined && !integrity.startsWith('sha512-')),
  ).toEqual([])
  expect(locked.filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
})

test('direct dependencies have exact versions', () => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const versions = Object.entries<string>({ ...dependencies, ...devDependencies })
  expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version))).toEqual([])
})

test('the SBOM lists every package that is installed with kcert, with its license', () => {
  const { bomFormat, components } = softwareBill()
  expect(bomFormat).toBe('CycloneDX')
  const named = new Set(components.map(({ name, version }) => `${name}@${version}`))
  const wanted = installed.map(([path, { version }]) => `${nameOf(path)}@${version}`)
  expect(wanted.filter((one) => !named.has(one))).toEqual([])
  expect(components.filter(({ licenses }) => licenses === undefined).map(({ name }) => name)).toEqual([])
})
