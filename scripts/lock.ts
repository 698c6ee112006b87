import { readFileSync } from 'node:fs'

/** An entry of package-lock.json. */
export interface Locked {
  readonly version: string
  readonly license?: string
  readonly integrity?: string
  readonly resolved?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly dev?: boolean
  readonly optional?: boolean
  readonly hasInstallScript?: boolean
}

type Packages = Readonly<Record<string, Locked>>

/** Returns the packages of package-lock.json by path. The empty path is the project itself. */
export function readLock(): Packages {
  return (JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Packages }).packages
}

/**
 * Returns the paths of the packages that are installed with kcert. npm's own marks also count packages that development needs.
 */
export function installedPaths(packages: Packages): Set<string> {
  const paths = new Set<string>()
  for (const name of Object.keys(packages['']!.dependencies ?? {}))
    closure(packages, `node_modules/${name}`, paths)
  return paths
}

/** Returns the paths of a package and of its dependencies, resolved as by npm: in the nearest node_modules above. */
export function closure(packages: Packages, path: string, seen = new Set<string>()): Set<string> {
  if (seen.has(path)) return seen
  seen.add(path)
  const {
    dependencies,
    optionalDependencies,
    peerDependencies = {},
    peerDependenciesMeta = {},
  } = packages[path]!
  const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true)
  for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
    const found = nearest(packages, path, name)
    if (found !== undefined) closure(packages, found, seen)
  }
  return seen
}

/** Returns "@scope/name" for "node_modules/a/node_modules/@scope/name". */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

function nearest(packages: Packages, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    if (packages[path] !== undefined) return path
    if (folder === '') return undefined
  }
}
