import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Config, Plugin } from '@oclif/core'
import { architecturePage } from './docs/architecture.ts'
import { commandPages } from './docs/commands.ts'
import { dependencyPage } from './docs/dependencies.ts'
import { deployFiles } from './docs/deploy.ts'
import { errorPage } from './docs/errors.ts'
import { metricsPage } from './docs/metrics.ts'
import { problemPage } from './docs/problems.ts'
import { refusalPage } from './docs/refusals.ts'
import { schemaFiles } from './docs/schemas.ts'

// Generates oclif.manifest.json and the reference part of docs/ from the source. Without --write, it compares, and fails when a
// committed file differs from the generated one.

const write = process.argv.includes('--write')
const manifest = await readManifest()
const generated = new Map<string, string>([
  ['oclif.manifest.json', `${JSON.stringify(manifest, null, 2)}\n`],
  ['ARCHITECTURE.md', architecturePage()],
  ...commandPages(manifest.commands),
  ['docs/dependencies.md', dependencyPage()],
  ['docs/errors.md', errorPage()],
  ['docs/metrics.md', metricsPage()],
  ['docs/problems.md', problemPage()],
  ['docs/refusals.md', refusalPage()],
  ...schemaFiles(),
  ...deployFiles(),
])
const left = globSync(['docs/commands/*.md', 'docs/schemas/*.json']).filter((path) => !generated.has(path))
const stale = [...generated].filter(
  ([path, text]) => !existsSync(path) || readFileSync(path, 'utf8') !== text,
)

if (write) writeAll()
else report()

function writeAll(): void {
  for (const path of left) rmSync(path)
  for (const [path, text] of stale) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  process.stdout.write(`${stale.length} of ${generated.size} files written, ${left.length} removed\n`)
}

function report(): void {
  for (const [path] of stale) process.stderr.write(`${path} is not what the source says: run npm run docs\n`)
  for (const path of left)
    process.stderr.write(`${path} belongs to nothing in the source: run npm run docs\n`)
  process.stdout.write(`${generated.size} generated files compared\n`)
  process.exitCode = stale.length + left.length === 0 ? 0 : 1
}

/** Reads every command class from dist/, as oclif would, and returns the manifest in a stable order. */
async function readManifest(): Promise<Plugin['manifest']> {
  const plugin = new Plugin({
    root: process.cwd(),
    type: 'core',
    ignoreManifest: true,
    errorOnManifestCreate: true,
  })
  await plugin.load()
  // Defaults of flags may be functions of the config. Loading a config proves that the classes work with oclif's own.
  await Config.load({ root: process.cwd() })
  const commands = Object.fromEntries(
    Object.entries(plugin.manifest.commands).sort(([a], [b]) => (a < b ? -1 : 1)),
  )
  return { commands, version: plugin.manifest.version }
}
