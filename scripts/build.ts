import { hash } from 'node:crypto'
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { type BuildOptions, build, type Metafile } from 'esbuild'
import type { RootHelp } from '../src/cli/quick-help.ts'
import { leanClientNode } from './lean-client-node.ts'
import { leanOclif, quietOclif } from './lean-oclif.ts'
import { link } from './link.ts'
import { nodeBuiltins } from './node-builtins.ts'

// Bundles src/ into dist/: one build for each command. Code that a command always needs is in few files, and rarely needed code
// is in separate chunks. oclif and the other packages are bundled, because reading one file is several times faster than reading
// their hundreds of files.

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
const commands = globSync('src/commands/**/*.ts', { exclude: (path) => path.endsWith('.test.ts') })

const shared = {
  outbase: 'src',
  outdir: 'dist',
  bundle: true,
  // yaml's Node entry point is CommonJS, of which a bundled import() has no named exports. This entry point has the same code as
  // ES modules.
  alias: { yaml: resolve('node_modules/yaml/browser/index.js') },
  // Bundled completely, it would add 6 MB to each command for identity providers and SOCKS proxies. Those load a separate script.
  external: ['@kubernetes/client-node'],
  format: 'esm' as const,
  platform: 'node' as const,
  target: 'node24',
  // Names stay: esbuild would set the name of a renamed function again at each start and, within functions, at each call.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'inline' as const,
  metafile: true as const,
  logLevel: 'warning' as const,
  define: {
    KCERT_VERSION: JSON.stringify(version),
    // Set for a release: `KCERT_COMMIT=$(git rev-parse HEAD) npm run build`.
    KCERT_COMMIT: JSON.stringify(process.env.KCERT_COMMIT ?? ''),
    'process.env.NODE_ENV': '"production"',
  },
  write: false as const,
} satisfies BuildOptions
const program = await build({
  ...shared,
  entryPoints: ['src/main.ts', ...commands],
  chunkNames: 'chunks/[name]-[hash]',
  splitting: true,
  plugins: [leanOclif(), quietOclif(), leanClientNode(), nodeBuiltins()],
})
// Help needs all of oclif, in a separate bundle that nothing else loads.
const help = await build({
  ...shared,
  entryPoints: ['src/cli/help.ts'],
  plugins: [quietOclif(), nodeBuiltins()],
})
const packages = await build({
  ...shared,
  external: [],
  entryPoints: [{ in: '@kubernetes/client-node', out: 'packages/client-node' }],
  plugins: [nodeBuiltins()],
})
const commandHelp = await build({
  ...shared,
  entryPoints: ['src/cli/command-help.ts'],
  plugins: [leanOclif('help'), nodeBuiltins()],
})
const quickHelp = await build({
  ...shared,
  entryPoints: ['src/cli/quick-help.ts'],
  plugins: [nodeBuiltins()],
})

const linked = [...link([program, help, commandHelp, quickHelp, packages], 'dist')]
const digest = hash('sha256', JSON.stringify(linked)).slice(0, 12)
const scripts = linked.map(([path, text]) => [path, text.replaceAll('KCERT_BUILD', `"${digest}"`)] as const)
// All files of kcert are CommonJS scripts, whatever module type the surrounding package declares.
writeDist(new Map([...scripts, ...commandEntries(), ['package.json', '{"type":"commonjs"}\n']]))
writeFileSync('dist/root-help.json', asciiJson(await rootHelps()))
if (process.argv.includes('--sizes')) for (const { metafile } of [program, help]) printSizes(metafile)

/** Returns the root help for each terminal width at which it changes. */
async function rootHelps(): Promise<RootHelp> {
  const { plainHelp } = createRequire(import.meta.url)(
    '../dist/cli/help.js',
  ) as typeof import('../src/cli/help.ts')
  const narrowest = 40
  const widest = 240
  const helps: [fromWidth: number, text: string][] = []
  for (let width = narrowest; width <= widest; width++) {
    const text = await plainHelp(resolve('.'), [], width, '{userAgent}')
    if (helps.at(-1)?.[1] !== text) helps.push([width, text])
  }
  return helps
}

/** Writes the help data of each command to its own file: reading the whole manifest takes longer than printing the help. */
function commandEntries(): [string, string][] {
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
    commands: Record<string, object>
  }
  return Object.entries(commands).map(([id, command]) => {
    const below = Object.entries(commands).flatMap(([other, one]) =>
      other.startsWith(`${id}:`) ? [one] : [],
    )
    return [`help/${id.replaceAll(':', '/')}.json`, asciiJson({ command, below })]
  })
}

/** Node reads ASCII scripts and their data byte by byte, without decoding. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

// Files of an earlier build are deleted last, so that a running kcert still finds its files.
function writeDist(files: ReadonlyMap<string, string>): void {
  for (const [path, text] of files) {
    mkdirSync(dirname(`dist/${path}`), { recursive: true })
    writeFileSync(`dist/${path}`, text)
  }
  for (const path of globSync('**/*', { cwd: 'dist', withFileTypes: true })) {
    const name = relative('dist', join(path.parentPath, path.name))
    if (path.isFile() && !files.has(name) && name !== 'root-help.json') rmSync(join('dist', name))
  }
}

function printSizes(metafile: Metafile) {
  for (const [path, output] of Object.entries(metafile.outputs)) {
    process.stdout.write(`${path} ${output.bytes}\n`)
    const largest = Object.entries(output.inputs).sort((a, b) => b[1].bytesInOutput - a[1].bytesInOutput)
    for (const [input, { bytesInOutput }] of largest.slice(0, 8))
      process.stdout.write(`    ${bytesInOutput} ${input}\n`)
  }
}
