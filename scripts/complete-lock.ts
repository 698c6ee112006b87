import { readFileSync, writeFileSync } from 'node:fs'

// `node scripts/complete-lock.ts`, after every `npm install`. A registry mirror may lack the builds of a package for other
// platforms. npm then omits them from the lock, and `npm ci` refuses that lock everywhere. This script adds the missing entries
// by name and version, which is all that npm needs for a package that it does not install here.

const path = 'package-lock.json'

interface Entry {
  version: string
  optionalDependencies?: Record<string, string>
  resolved?: string
  os?: string[]
  cpu?: string[]
  libc?: string[]
  dev?: boolean
  optional?: boolean
}

const lock = JSON.parse(readFileSync(path, 'utf8')) as { packages: Record<string, Entry> }
const { '': root, ...packages } = lock.packages
let added = 0

for (const entry of Object.values(packages)) {
  delete entry.resolved
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const isLocked = Object.keys(packages).some((key) => key.endsWith(`node_modules/${name}`))
    if (isLocked) continue
    packages[`node_modules/${name}`] = platformBuild(name, version)
    added++
  }
}

lock.packages = {
  '': root!,
  ...Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1))),
}
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
process.stdout.write(`${added} packages of other platforms added to ${path}\n`)

/** A name such as "@scope/cli-linux-x64-musl" contains the platform. */
function platformBuild(name: string, version: string): Entry {
  const words = name.replace(/^.*\/(?:cli-|binding-)?/, '').split('-')
  const [os = '', cpu = '', abi] = words
  const libc = abi?.startsWith('musl') ? 'musl' : abi?.startsWith('gnu') ? 'glibc' : undefined
  return { version, cpu: [cpu], dev: true, ...(libc && { libc: [libc] }), optional: true, os: [os] }
}
