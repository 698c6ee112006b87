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

/** The scripts of the program (scripts/link.ts), in dist/ or in the single executable. */
export interface ProgramScripts {
  has(name: string): boolean
  /** Returns the exports of a script, which is evaluated once. */
  load(name: string): unknown
  /** Returns the text of a script, or of another file of the build next to it. */
  text(name: string): string
}

/** The folder of package.json and the command manifest, or a function that reads these if there is no folder. */
export type PackageRoot = string | ((name: 'package.json' | 'oclif.manifest.json') => unknown)

interface ScriptSource {
  has(name: string): boolean
  /** Returns a script's bytes; scripts are ASCII, because esbuild escapes other characters. */
  bytes(name: string): Buffer
  /** Returns V8's compiled code from an earlier run, if available. */
  code(name: string): Uint8Array | undefined
  /** Returns the script's name for stack traces. */
  path(name: string): string
}

interface LoadedScript {
  readonly script: Script
  readonly module: { exports: unknown }
  readonly hadCode: boolean
}

/**
 * Returns the scripts of a folder, and `keepCode`, which is called at the end of a run. It stores V8's compiled code, including
 * the functions that were used, so that the next run compiles nothing. Node's own compile cache stores only the outermost
 * function, and compiling the rest takes half as long as starting an empty Node process.
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
  /** V8 runs with other flags: a run that starts without them would reject its compiled code. */
  var kcertEngineIsTuned: boolean | undefined
}

// Added to a script before it becomes a string: V8 would copy a concatenated string on its heap, and collect the garbage.
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
    // A script requires another one by a path that resolves to dist/. They contain all other modules except Node's own.
    const take = (path: string): unknown =>
      path.startsWith('.') ? load(path.replace(/^(?:\.\.?\/)+/, '')) : process.getBuiltinModule(path)
    evaluate(module.exports, take, module, source.path(name))
    return module.exports
  }
  return { has: source.has, text: (name) => source.bytes(name).toString('latin1'), load, loaded }
}

/**
 * The caller's own cache folder. Compiled code runs without a comparison with its source, so no other user may be able to replace
 * it: every folder from / down belongs to root or the caller, and nothing is created in the home of another user.
 */
function ownCacheFolder(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const base = env.XDG_CACHE_HOME || (env.HOME && `${env.HOME}/.cache`)
  if (!base?.startsWith('/') || !process.geteuid) return undefined
  try {
    // One level at a time: mkdir's own recursion never returns in /proc, where nothing can be created. And a missing home
    // (/nonexistent for Debian's service accounts) is not created.
    const parent = env.XDG_CACHE_HOME ? base : ownFolder(base)
    return parent === undefined ? undefined : ownFolder(`${parent}/kcert`)
  } catch {
    return undefined
  }
}

/** Returns the path of a folder that the caller owns and no other user can change; it is created if absent. */
function ownFolder(path: string): string | undefined {
  const trust = pathTrust(path)
  if ('untrusted' in trust) return undefined
  if (!statSync(trust.path, { throwIfNoEntry: false })) mkdirSync(trust.path, { mode: 0o700 })
  return lstatSync(trust.path).uid === process.geteuid?.() ? trust.path : undefined
}

/** Owner and mode are those of the opened file. */
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
 * Returns the code, which is stored twice in a row, or undefined if the copies differ: V8 would run damaged code, and
 * crash. A checksum in JavaScript would take as long as V8 takes to read the code.
 */
export function onlyCopy(kept: Buffer): Buffer | undefined {
  const code = kept.subarray(0, kept.length >> 1)
  return code.length > 0 && code.equals(kept.subarray(code.length)) ? code : undefined
}

/** Writes a file completely or not at all, because V8 does not check that code is complete. A failed write is ignored. */
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

// Long enough for two installed versions to each keep their code.
const keptForMs = 7 * 24 * 60 * 60_000

/** Removes the code of other builds or other Node versions. */
function removeOlder(folder: string, name: string): void {
  const [build = ''] = /-[^-]*-[^-]*$/.exec(name) ?? []
  const since = statSync(`${folder}/${name}`).mtimeMs - keptForMs
  for (const other of readdirSync(folder)) {
    const path = `${folder}/${other}`
    if (/\.js-[^-]*-[^-]*$/.test(other) && !other.endsWith(build) && statSync(path).mtimeMs < since)
      rmSync(path)
  }
}
