import { execFileSync, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { build } from 'esbuild'
import { onlyCopy } from '../src/cli/program-scripts.ts'
import { nodeBuiltins } from './node-builtins.ts'

// `npm run dist [-- FILE]`: release/kcert-linux-x64, one file that needs nothing beside it. It is the Node of node_modules with the scripts of
// dist/ as assets (https://nodejs.org/api/single-executable-applications.html), and with what V8 compiles of them when each
// command is run. No start snapshot: it would freeze what Node knows of the terminal's colours.

if (process.platform !== 'linux' || process.arch !== 'x64')
  throw new Error(`an executable for linux-x64 is made there, not on ${process.platform}-${process.arch}`)

const target = process.argv[2] ?? 'release/kcert-linux-x64'
const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'
const folder = mkdtempSync(join(tmpdir(), 'kcert-dist-'))
try {
  // As in test/build-once.ts.
  if (process.env.KCERT_TEST_BUILT === undefined)
    execFileSync(process.execPath, ['scripts/build.ts'], { stdio: 'inherit' })
  const scripts = globSync('**/*.{js,json}', { cwd: 'dist' }).filter((name) => name !== 'package.json')
  const assets = {
    'package.json': 'package.json',
    'oclif.manifest.json': 'oclif.manifest.json',
    ...Object.fromEntries(scripts.map((name) => [name, `dist/${name}`])),
    ...compiledCode(),
  }
  await writeExecutable(assets)
  process.stdout.write(`${target}\n`)
} finally {
  rmSync(folder, { recursive: true })
}

/** Runs every command in the ways that cost nothing and need nothing, and returns what the program kept of it. */
function compiledCode(): Record<string, string> {
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as { commands: object }
  const lines = [
    ['inspect', 'examples/kubelet.kubeconfig'],
    ['--help'],
    ['inspect', '--help'],
    ['csr', '--help'],
    ...Object.keys(commands).map((id) => [...id.split(':'), '--no-such-flag']),
  ]
  for (const line of lines)
    spawnSync(process.execPath, [resolve('bin/run.js'), ...line], {
      env: { XDG_CACHE_HOME: folder, PATH: process.env.PATH },
      stdio: 'ignore',
    })
  const kept = join(folder, 'kcert')
  return Object.fromEntries(
    readdirSync(kept).map((file) => {
      const path = join(kept, file)
      // Once: what lies in the executable is not written again.
      writeFileSync(path, onlyCopy(readFileSync(path))!)
      // commands.csr.list.js-BUILD-VERSION is of commands/csr/list.js.
      return [`${file.replace(/\.js-.*/s, '').replaceAll('.', '/')}.js.code`, path]
    }),
  )
}

async function writeExecutable(assets: Readonly<Record<string, string>>): Promise<void> {
  const main = join(folder, 'main.js')
  await build({
    entryPoints: ['src/executable.ts'],
    outfile: main,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node24',
    minifySyntax: true,
    minifyWhitespace: true,
    define: constants(),
    plugins: [nodeBuiltins()],
  })
  const output = join(folder, 'kcert.blob')
  const config = join(folder, 'sea.json')
  writeFileSync(
    config,
    JSON.stringify({ main, output, assets, disableExperimentalSEAWarning: true, useCodeCache: true }),
  )
  execFileSync(process.execPath, ['--experimental-sea-config', config], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  mkdirSync(dirname(target), { recursive: true })
  rmSync(target, { force: true })
  copyFileSync(process.execPath, target)
  // What it says of notes without names is so of every Node.
  execFileSync('node_modules/.bin/postject', [target, 'NODE_SEA_BLOB', output, '--sentinel-fuse', fuse], {
    stdio: 'ignore',
  })
}

/** What the build put in the place of these names, read from what it made. */
function constants(): Record<string, string> {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  return { KCERT_VERSION: JSON.stringify(version), KCERT_BUILD: '""' }
}
