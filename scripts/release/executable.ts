import { execFileSync, spawn } from 'node:child_process'
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { constants as zlib, zstdCompressSync } from 'node:zlib'
import { build } from 'esbuild'
import pMap from 'p-map'
import { onlyCopy } from '../../src/cli/program-scripts.ts'
import { nodeBuiltins } from '../node-builtins.ts'
import { type Arch, launcherOf, neededGlibc, newestGlibc, nodeFolder, strippedNode } from './node.ts'

// The single executable: Node.js with the scripts of dist/ as assets
// (https://nodejs.org/api/single-executable-applications.html), and with the code that V8 compiles when each command runs. It has
// no startup snapshot, because a snapshot would freeze the terminal's colors.

const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2'

/**
 * Builds dist/, and from it the executable of an architecture. If this machine cannot run Node.js of that architecture, the
 * executable has no compiled code.
 */
export async function buildExecutable(arch: Arch, target: string): Promise<void> {
  // As in test/build-once.ts.
  if (process.env.KCERT_TEST_BUILT === undefined)
    execFileSync(process.execPath, ['scripts/build.ts'], { stdio: 'inherit' })
  const folder = mkdtempSync(join(tmpdir(), 'kcert-dist-'))
  try {
    const launcher = launcherOf(arch)
    const assets = {
      'package.json': 'package.json',
      'oclif.manifest.json': 'oclif.manifest.json',
      ...scriptAssets(folder),
      ...(launcher === undefined
        ? {}
        : await compiledCode([...launcher, join(nodeFolder(arch), 'bin/node')], folder)),
    }
    await writeExecutable(arch, target, assets, folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
  const glibc = neededGlibc(target)
  if (glibc.localeCompare(newestGlibc, 'en', { numeric: true }) > 0)
    throw new Error(`${target} needs glibc ${glibc}, and a release needs at most ${newestGlibc}`)
}

/**
 * Stores each module once, because the scripts of dist/ repeat modules so that a command is one file. Each script has an asset
 * with the positions of its parts in "parts". Scripts of whole packages are rarely needed and are compressed.
 */
function scriptAssets(folder: string): Record<string, string> {
  const assets: Record<string, string> = {}
  const places = new Map<string, number>()
  const parts: string[] = []
  let length = 0
  const write = (name: string, bytes: Uint8Array): void => {
    const path = join(folder, name.replaceAll('/', '.'))
    writeFileSync(path, bytes)
    assets[name] = path
  }
  for (const name of globSync('**/*.{js,json}', { cwd: 'dist' }).sort()) {
    if (name === 'package.json') continue
    const text = readFileSync(`dist/${name}`, 'latin1')
    if (name.startsWith('packages/')) {
      write(`${name}.zst`, compressed(Buffer.from(text, 'latin1')))
      continue
    }
    const own = text.split(/(?<=\n)(?=\$define\()/)
    const index = Buffer.alloc(own.length * 8)
    for (const [at, part] of own.entries()) {
      if (!places.has(part)) {
        places.set(part, length)
        parts.push(part)
        length += part.length
      }
      const from = places.get(part) ?? 0
      index.writeUInt32LE(from, at * 8)
      index.writeUInt32LE(from + part.length, at * 8 + 4)
    }
    write(name, index)
  }
  write('parts', Buffer.from(parts.join(''), 'latin1'))
  return assets
}

/** Runs every command in ways that need no cluster, and returns the code cache that the program stored. */
async function compiledCode(node: readonly string[], folder: string): Promise<Record<string, string>> {
  const [program = '', ...words] = node
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as { commands: object }
  const lines = [
    ['inspect', 'examples/kubelet.kubeconfig'],
    ['--help'],
    ['inspect', '--help'],
    ['csr', '--help'],
    ...Object.keys(commands).map((id) => [...id.split(':'), '--no-such-flag']),
  ]
  // Two at once: under qemu a run takes ten seconds of one core.
  await pMap(
    lines,
    (line) =>
      new Promise<void>((ended) => {
        const run = spawn(program, [...words, resolve('bin/run.js'), ...line], {
          env: { XDG_CACHE_HOME: folder, PATH: process.env.PATH },
          stdio: 'ignore',
        })
        run.once('close', () => ended()).once('error', () => ended())
      }),
    { concurrency: 2 },
  )
  const kept = join(folder, 'kcert')
  const assets = readdirSync(kept).map((file) => {
    const path = join(kept, file)
    // commands.csr.list.js-BUILD-VERSION belongs to commands/csr/list.js.
    const name = `${file.replace(/\.js-.*/s, '').replaceAll('.', '/')}.js`
    const code = onlyCopy(readFileSync(path))
    if (code === undefined) throw new Error(`the code of ${name} is damaged`)
    const isPlain = plainCode.test(name)
    writeFileSync(path, isPlain ? code : compressed(code))
    return [`${name}.code${isPlain ? '' : '.zst'}`, path] as const
  })
  return Object.fromEntries(assets)
}

// The starts that docs/benchmarks.md measures. For other scripts, decompression takes a few milliseconds and saves 10 MB on disk.
const plainCode = /^(?:commands\/inspect|cli\/[a-z-]+)\.js$/

function compressed(bytes: Uint8Array): Uint8Array {
  return zstdCompressSync(bytes, { params: { [zlib.ZSTD_c_compressionLevel]: 19 } })
}

async function writeExecutable(
  arch: Arch,
  target: string,
  assets: Readonly<Record<string, string>>,
  folder: string,
): Promise<void> {
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
  const launcher = launcherOf(arch)
  // V8 rejects code that another architecture compiled, with a line on standard error.
  const useCodeCache = launcher !== undefined
  writeFileSync(
    config,
    JSON.stringify({ main, output, assets, disableExperimentalSEAWarning: true, useCodeCache }),
  )
  const [program = '', ...words] = [
    ...(launcher ?? []),
    launcher ? join(nodeFolder(arch), 'bin/node') : process.execPath,
  ]
  execFileSync(program, [...words, '--experimental-sea-config', config], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const node = join(folder, 'node')
  strippedNode(arch, node)
  // postject warns about notes without names, which every build of Node.js has.
  execFileSync('node_modules/.bin/postject', [node, 'NODE_SEA_BLOB', output, '--sentinel-fuse', fuse], {
    stdio: 'ignore',
  })
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(node, `${target}.new`)
  renameSync(`${target}.new`, target)
}

/** The values of the constants that scripts/build.ts also defines. */
function constants(): Record<string, string> {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  return { KCERT_VERSION: JSON.stringify(version), KCERT_BUILD: '""' }
}
