import { globSync, readFileSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { type BuildOptions, type BuildResult, build, type Metafile } from 'esbuild'
import pMap from 'p-map'
import { leanClientNode } from './lean-client-node.ts'
import { leanOclif, quietOclif } from './lean-oclif.ts'
import { nodeBuiltins } from './node-builtins.ts'

// Bundles src/ into dist/: a build for each command, so that what it always needs is in few files and what it seldom needs is
// in chunks of their own. oclif and the other packages are taken in, because reading one file is several times quicker than
// reading the hundreds they consist of.

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
const commands = globSync('src/commands/**/*.ts', { exclude: (path) => path.endsWith('.test.ts') })

const shared: BuildOptions = {
  outbase: 'src',
  outdir: 'dist',
  bundle: true,
  // For Node yaml offers CommonJS alone, of which a bundled import() has no named exports. This is the same code as modules.
  alias: { yaml: resolve('node_modules/yaml/browser/index.js') },
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // Names stay: a function of another name would be given its own again at each start and, within functions, at each call.
  minifySyntax: true,
  minifyWhitespace: true,
  metafile: true,
  logLevel: 'warning',
  define: { KCERT_VERSION: JSON.stringify(version), 'process.env.NODE_ENV': '"production"' },
  banner: { js: commonJsNames() },
}
// A few at a time: all at once they take 3 GB, and minutes where memory is slow to come.
const atOnce = 2
const runs = await pMap(
  ['src/main.ts', ...commands],
  (entry) =>
    build({
      ...shared,
      entryPoints: [entry],
      chunkNames: 'chunks/[name]-[hash]',
      splitting: true,
      plugins: [leanOclif(), quietOclif(), leanClientNode(), nodeBuiltins()],
    }),
  { concurrency: atOnce },
)
// Help is oclif whole, in a bundle of its own that nothing else loads.
const help = await build({ ...shared, entryPoints: ['src/cli/help.ts'], plugins: [quietOclif()] })

removeLeftovers([...runs, help])
if (process.argv.includes('--sizes')) for (const { metafile } of [...runs, help]) printSizes(metafile)

// oclif and node-forge are CommonJS and expect these names; in an ES module they must be made.
function commonJsNames(): string {
  return [
    "const require=process.getBuiltinModule('node:module').createRequire(import.meta.url),",
    '__filename=import.meta.filename,__dirname=import.meta.dirname;',
  ].join('')
}

// Files of an earlier build go last, so that a kcert that is running meanwhile finds what it needs.
function removeLeftovers(results: readonly BuildResult[]): void {
  const built = new Set(results.flatMap(({ metafile }) => Object.keys(metafile?.outputs ?? {})))
  for (const path of globSync('dist/**/*.js')) if (!built.has(path)) rmSync(path)
}

function printSizes(metafile: Metafile | undefined) {
  for (const [path, output] of Object.entries(metafile?.outputs ?? {})) {
    process.stdout.write(`${path} ${output.bytes}\n`)
    const largest = Object.entries(output.inputs).sort((a, b) => b[1].bytesInOutput - a[1].bytesInOutput)
    for (const [input, { bytesInOutput }] of largest.slice(0, 8))
      process.stdout.write(`    ${bytesInOutput} ${input}\n`)
  }
}
