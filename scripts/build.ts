import { globSync, readFileSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { build } from 'esbuild'

// Bundles src/ into dist/: one entry for each command, shared code in chunks. oclif and the other packages are taken in,
// because reading one file is several times quicker than reading the hundreds they consist of.

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
const commands = globSync('src/commands/**/*.ts', { exclude: (path) => path.endsWith('.test.ts') })

rmSync('dist', { recursive: true, force: true })
const result = await build({
  entryPoints: ['src/main.ts', ...commands],
  outbase: 'src',
  outdir: 'dist',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  // For Node yaml offers CommonJS alone, of which a bundled import() has no named exports. This is the same code as modules.
  alias: { yaml: resolve('node_modules/yaml/browser/index.js') },
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  minify: true,
  keepNames: true,
  sourcemap: false,
  metafile: true,
  logLevel: 'warning',
  define: { KCERT_VERSION: JSON.stringify(version), 'process.env.NODE_ENV': '"production"' },
  banner: { js: commonJsNames() },
})

if (process.argv.includes('--sizes')) printSizes(result.metafile)

// oclif and node-forge are CommonJS and expect these names; in an ES module they must be made.
function commonJsNames(): string {
  return [
    "import{createRequire as kcertRequire}from'node:module';",
    "import{fileURLToPath as kcertPath}from'node:url';",
    'const require=kcertRequire(import.meta.url),__filename=kcertPath(import.meta.url),',
    "__dirname=__filename.slice(0,__filename.lastIndexOf('/'));",
  ].join('')
}

function printSizes(metafile: {
  outputs: Record<string, { bytes: number; inputs: Record<string, { bytesInOutput: number }> }>
}) {
  for (const [path, output] of Object.entries(metafile.outputs)) {
    process.stdout.write(`${path} ${output.bytes}\n`)
    const largest = Object.entries(output.inputs).sort((a, b) => b[1].bytesInOutput - a[1].bytesInOutput)
    for (const [input, { bytesInOutput }] of largest.slice(0, 8))
      process.stdout.write(`    ${bytesInOutput} ${input}\n`)
  }
}
