import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { installedPaths, type Locked, nameOf, readLock } from '../../scripts/lock.ts'
import { softwareBill } from '../../scripts/sbom.ts'

// What a user installs with kcert, by the lock. docs/dependencies.md counts and justifies it, and `npm run check` holds that against the lock.

const packages = readLock()
const locked = Object.entries(packages).filter(([path]) => path !== '')
const paths = installedPaths(packages)
const installed = locked.filter(([path]) => paths.has(path))

/** Those that ask for no more than to be named. */
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

test('nothing that is installed with kcert has an install script', () => {
  expect(installed.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([])
})

test('everything that is installed with kcert has a licence that lets it be', () => {
  // Where one may be chosen, one of them is enough.
  const isFree = (license = ''): boolean =>
    license
      .replaceAll(/[()]/g, '')
      .split(' OR ')
      .some((one) => free.includes(one))
  expect(installed.filter(([, { license }]) => !isFree(license)).map(([path]) => path)).toEqual([])
})

test('the lock has the digest of every package that may be installed here, and no place to get it from', () => {
  const isOfOtherPlatform = ({ dev, optional }: Locked): boolean => dev === true && optional === true
  const without = locked.filter(([, one]) => one.integrity === undefined && !isOfOtherPlatform(one))
  expect(without.map(([path]) => path)).toEqual([])
  expect(
    locked.filter(([, { integrity }]) => integrity !== undefined && !integrity.startsWith('sha512-')),
  ).toEqual([])
  expect(locked.filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
})

test('direct dependencies are exact versions', () => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const versions = Object.entries<string>({ ...dependencies, ...devDependencies })
  expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version))).toEqual([])
})

test('the SBOM names every package that is installed with kcert, with its licence', () => {
  const { bomFormat, components } = softwareBill()
  expect(bomFormat).toBe('CycloneDX')
  const named = new Set(components.map(({ name, version }) => `${name}@${version}`))
  const wanted = installed.map(([path, { version }]) => `${nameOf(path)}@${version}`)
  expect(wanted.filter((one) => !named.has(one))).toEqual([])
  expect(components.filter(({ licenses }) => licenses === undefined).map(({ name }) => name)).toEqual([])
})
