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

// Bundles src/ into dist/: a build for each command, so that what it always needs is in few files and what it seldom needs is
// in chunks of their own. oclif and the other packages are taken in, because reading one file is several times quicker than
// reading the hundreds they consist of.

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
const commands = globSync('src/commands/**/*.ts', { exclude: (path) => path.endsWith('.test.ts') })

const shared = {
  outbase: 'src',
  outdir: 'dist',
  bundle: true,
  // For Node yaml offers CommonJS alone, of which a bundled import() has no named exports. This is the same code as modules.
  alias: { yaml: resolve('node_modules/yaml/browser/index.js') },
  // Whole, it is 6 MB in each command's build, for identity providers and SOCKS proxies alone: those load a script of its own.
  external: ['@kubernetes/client-node'],
  format: 'esm' as const,
  platform: 'node' as const,
  target: 'node24',
  // Names stay: a function of another name would be given its own again at each start and, within functions, at each call.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'inline' as const,
  metafile: true as const,
  logLevel: 'warning' as const,
  define: {
    KCERT_VERSION: JSON.stringify(version),
    // Of a release: `KCERT_COMMIT=$(git rev-parse HEAD) npm run build`.
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
// Help is oclif whole, in a bundle of its own that nothing else loads.
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
// What kcert consists of are scripts, whatever the package around them says of its modules.
writeDist(new Map([...scripts, ...commandEntries(), ['package.json', '{"type":"commonjs"}\n']]))
writeFileSync('dist/root-help.json', asciiJson(await rootHelps()))
if (process.argv.includes('--sizes')) for (const { metafile } of [program, help]) printSizes(metafile)

/** The list of commands, from each width on that changes it. */
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

/** Of each command in a file of its own what its help is made of: the manifest whole takes longer to read than that takes to write. */
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

/** Scripts and what lies beside them are read octet by octet. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

// Files of an earlier build go last, so that a kcert that is running meanwhile finds what it needs.
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
