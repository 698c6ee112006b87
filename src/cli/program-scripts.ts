import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { Script } from 'node:vm'
import { isTrusted, pathTrust } from '../system/trusted-path.ts'

/** The scripts of the program (scripts/link.ts), wherever they lie: in dist/, or within the single executable. */
export interface ProgramScripts {
  has(name: string): boolean
  /** What a script exports. It is evaluated once. */
  load(name: string): unknown
  /** Of a script, or of what the build put beside them. */
  text(name: string): string
}

/** The folder of package.json and the manifest of the commands, or what reads these where there is no folder. */
export type PackageRoot = string | ((name: 'package.json' | 'oclif.manifest.json') => unknown)

interface ScriptSource {
  has(name: string): boolean
  /** Of a script; they are ASCII: esbuild escapes the rest. */
  bytes(name: string): Buffer
  /** What V8 compiled of it in an earlier run, if that is known. */
  code(name: string): Uint8Array | undefined
  /** How the script is called in a stack trace. */
  path(name: string): string
}

interface LoadedScript {
  readonly script: Script
  readonly module: { exports: unknown }
  readonly hadCode: boolean
}

/**
 * Returns the scripts of a folder, and `keepCode`, which is for the end of a run: it stores what V8 compiled, functions that were
 * needed included, so that the next run compiles nothing. Node's own compile cache keeps the outermost function alone, and
 * compiling the rest takes half as long as an empty Node.
 */
export function scriptsOf(
  dist: string,
  build: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): ProgramScripts & { keepCode(): void } {
  const folder = ownCacheFolder(env)
  const keptName = (name: string): string => `${name.replaceAll('/', '.')}-${build}-${process.version}`
  const { loaded, ...scripts } = loadScripts({
    has: (name) => existsSync(dist + name),
    bytes: (name) => readFileSync(dist + name),
    code: (name) => (folder === undefined ? undefined : readIfOwn(`${folder}/${keptName(name)}`)),
    path: (name) => dist + name,
  })
  const keepCode = (): void => {
    if (folder === undefined || globalThis.kcertEngineIsTuned) return
    for (const [name, { script, hadCode }] of loaded)
      if (!hadCode) keep(folder, keptName(name), script.createCachedData())
  }
  return { ...scripts, keepCode }
}

declare global {
  /** V8 was given other flags: what it compiled would be refused by a run that starts without them. */
  var kcertEngineIsTuned: boolean | undefined
}

// Put around a script before it becomes a string: a string of two would be copied on V8's heap, and its garbage collected.
const head = Buffer.from('(function(exports,require,module,__filename){')
const tail = Buffer.from('\n})')

export function loadScripts(
  source: ScriptSource,
): ProgramScripts & { readonly loaded: ReadonlyMap<string, LoadedScript> } {
  const loaded = new Map<string, LoadedScript>()
  const load = (name: string): unknown => {
    const before = loaded.get(name)
    if (before !== undefined) return before.module.exports
    const cachedData = source.code(name)
    const script = new Script(Buffer.concat([head, source.bytes(name), tail]).toString('latin1'), {
      filename: source.path(name),
      ...(cachedData === undefined ? {} : { cachedData }),
    })
    const module = { exports: {} }
    loaded.set(name, { script, module, hadCode: script.cachedDataRejected === false })
    const evaluate = script.runInThisContext() as (...names: unknown[]) => void
    // One script requires another by a path that leads to dist/ first; all else is in them but Node itself.
    const take = (path: string): unknown =>
      path.startsWith('.') ? load(path.replace(/^(?:\.\.?\/)+/, '')) : process.getBuiltinModule(path)
    evaluate(module.exports, take, module, source.path(name))
    return module.exports
  }
  return { has: source.has, text: (name) => source.bytes(name).toString('latin1'), load, loaded }
}

/**
 * The caller's own cache folder. Compiled code runs as what it was compiled from, so no other user may be able to replace it:
 * every folder from / down belongs to root or the caller, and nothing is created in the home of another user.
 */
function ownCacheFolder(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const base = env.XDG_CACHE_HOME || (env.HOME && `${env.HOME}/.cache`)
  if (!base?.startsWith('/') || !process.geteuid) return undefined
  try {
    // One level at a time: mkdir's own recursion never ends on /proc, where nothing can be made. And a home that is not there
    // (/nonexistent of Debian's service accounts) is not made.
    const parent = env.XDG_CACHE_HOME ? base : ownFolder(base)
    return parent === undefined ? undefined : ownFolder(`${parent}/kcert`)
  } catch {
    return undefined
  }
}

/** Returns where a folder is that others cannot change, and that is the caller's own; it is created when absent. */
function ownFolder(path: string): string | undefined {
  const trust = pathTrust(path)
  if ('untrusted' in trust) return undefined
  if (!statSync(trust.path, { throwIfNoEntry: false })) mkdirSync(trust.path, { mode: 0o700 })
  return lstatSync(trust.path).uid === process.geteuid?.() ? trust.path : undefined
}

/** Owner and mode are those of what was opened. */
function readIfOwn(path: string): Uint8Array | undefined {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const found = fstatSync(file)
      const isOwn = found.isFile() && found.uid === process.geteuid?.() && isTrusted(found)
      return isOwn ? onlyCopy(readFileSync(file)) : undefined
    } finally {
      closeSync(file)
    }
  } catch {
    return undefined
  }
}

/**
 * Returns the code that is kept there twice, one copy behind the other, or undefined where they differ: what a disk has damaged
 * V8 would take for code, and crash. A checksum in JavaScript would take as long as V8 takes to read the code.
 */
export function onlyCopy(kept: Buffer): Buffer | undefined {
  const code = kept.subarray(0, kept.length >> 1)
  return code.length > 0 && code.equals(kept.subarray(code.length)) ? code : undefined
}

/** Whole or not at all, for V8 does not look whether code is complete. That it cannot be kept is no reason to say anything. */
function keep(folder: string, name: string, code: Uint8Array): void {
  const temporary = `${folder}/.${name}.${process.pid}`
  try {
    const kept = Buffer.concat([code, code])
    const file = openSync(temporary, 'wx', 0o600)
    try {
      for (let written = 0; written < kept.length; ) written += writeSync(file, kept, written)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, `${folder}/${name}`)
    removeOlder(folder, name)
  } catch {
    rmSync(temporary, { force: true })
  }
}

// Long enough for two versions side by side to keep theirs.
const keptForMs = 7 * 24 * 60 * 60_000

/** What other builds or other Nodes left. */
function removeOlder(folder: string, name: string): void {
  const [build = ''] = /-[^-]*-[^-]*$/.exec(name) ?? []
  const since = statSync(`${folder}/${name}`).mtimeMs - keptForMs
  for (const other of readdirSync(folder)) {
    const path = `${folder}/${other}`
    if (/\.js-[^-]*-[^-]*$/.test(other) && !other.endsWith(build) && statSync(path).mtimeMs < since)
      rmSync(path)
  }
}
