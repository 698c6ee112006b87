import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { installedPaths, nameOf, readLock } from './lock.ts'

// `npm run sbom`: writes dist/kcert.cdx.json, the packages installed with kcert as CycloneDX 1.5, from the lock alone and without
// a network.

interface Bom {
  readonly bomFormat: string
  readonly metadata: { readonly component: { readonly 'bom-ref': string } }
  readonly components: readonly {
    readonly 'bom-ref': string
    readonly name: string
    readonly version: string
    readonly licenses?: readonly unknown[]
    readonly hashes?: readonly unknown[]
  }[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[]
}

/** Returns npm's SBOM of all packages, without those that only development needs: npm's own `--omit dev` omits more than that. */
export function softwareBill(): Bom {
  const text = execFileSync('npm', ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const bill = JSON.parse(text) as Bom
  const packages = readLock()
  const installed = new Set(
    [...installedPaths(packages)].map((path) => `${nameOf(path)}@${packages[path]!.version}`),
  )
  const components = bill.components.filter(({ name, version }) => installed.has(`${name}@${version}`))
  const kept = new Set([bill.metadata.component['bom-ref'], ...components.map((one) => one['bom-ref'])])
  const dependencies = bill.dependencies
    .filter(({ ref }) => kept.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((other) => kept.has(other)) }))
  return { ...bill, components, dependencies }
}

if (import.meta.main) {
  const path = 'dist/kcert.cdx.json'
  const bill = softwareBill()
  mkdirSync('dist', { recursive: true })
  writeFileSync(path, `${JSON.stringify(bill, null, 2)}\n`)
  process.stdout.write(`${path}: ${bill.components.length} components\n`)
}
