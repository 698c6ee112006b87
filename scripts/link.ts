import { builtinModules } from 'node:module'
import { dirname, posix, relative } from 'node:path'
import { compileFunction } from 'node:vm'
import type { Metafile, OutputFile } from 'esbuild'

// esbuild splits a program only into ES modules. Each passes through Node's module loader separately, and each imported builtin
// is loaded before the first line runs. This script converts esbuild's output into CommonJS scripts: one for each command, with
// all that it always needs, and one for each rarely needed chunk. Builtins are loaded at their first use.

/** esbuild's output for one module: its text and its imports. */
interface Chunk {
  readonly text: string
  /** Static imports, loaded before the module in this order. */
  readonly needs: readonly string[]
  /** Dynamic imports, loaded when they run. */
  readonly mayNeed: readonly string[]
}

/**
 * Returns the scripts, by path below `root`: the entry points, each with its static imports, and the chunks that an entry point
 * may load later. A chunk is evaluated once in a process, in any script that contains it.
 */
export function link(
  builds: readonly { readonly metafile: Metafile; readonly outputFiles: readonly OutputFile[] }[],
  root: string,
): Map<string, string> {
  const chunks = new Map<string, Chunk>()
  const entries = new Set<string>()
  for (const { metafile, outputFiles } of builds) {
    for (const [path, { imports, entryPoint }] of Object.entries(metafile.outputs)) {
      const name = relative(root, path)
      const ofKind = (kind: string): string[] =>
        imports.flatMap((one) =>
          one.kind === kind && !one.external && one.path.startsWith(root) ? [relative(root, one.path)] : [],
        )
      const file = outputFiles.find((one) => one.path.endsWith(`/${path}`))!
      chunks.set(name, {
        text: file.text,
        needs: ofKind('import-statement'),
        mayNeed: ofKind('dynamic-import'),
      })
      if (entryPoint !== undefined && !name.startsWith('chunks/')) entries.add(name)
    }
  }
  const scripts = new Map<string, string>()
  for (const entry of entries) {
    const always = closure([entry], chunks, ({ needs }) => needs)
    scripts.set(entry, script(entry, always, chunks))
    const known = new Set(always)
    const everything = closure([entry], chunks, ({ needs, mayNeed }) => [...needs, ...mayNeed])
    for (const name of everything) {
      if (known.has(name) || scripts.has(name)) continue
      const needed = closure([name], chunks, ({ needs }) => needs)
      const along = needed.filter((one) => !known.has(one) && chunks.get(one)!.text.length < leastFile)
      scripts.set(name, script(name, [...along.filter((one) => one !== name), name], chunks))
    }
  }
  return scripts
}

// Finding and opening a file takes longer than reading this many additional bytes.
const leastFile = 4096

function closure(
  from: readonly string[],
  chunks: ReadonlyMap<string, Chunk>,
  next: (chunk: Chunk) => readonly string[],
): string[] {
  const found = new Set<string>()
  const visit = (name: string): void => {
    if (found.has(name)) return
    found.add(name)
    for (const one of next(chunks.get(name)!)) visit(one)
  }
  for (const name of from) visit(name)
  return [...found]
}

/** Defines its modules for the whole process, unless another script already has. Exports the last module. */
function script(name: string, modules: readonly string[], chunks: ReadonlyMap<string, Chunk>): string {
  const root = posix.relative(dirname(name), '.') || '.'
  const definitions = modules.map(
    (one) => `$define(${JSON.stringify(one)},(function($exports){${body(one, chunks.get(one)!.text)}}));\n`,
  )
  const text = [
    '"use strict";',
    // A module is a function until it is evaluated, and then its exports. A module that no script defines is a file.
    'const $builtin=name=>{let m;return()=>m??=process.getBuiltinModule(name)},',
    '$modules=globalThis.kcertModules??=new Map,',
    '$define=(name,evaluate)=>{$modules.has(name)||$modules.set(name,{evaluate})},',
    `$take=name=>{let m=$modules.get(name);if(m===void 0){require(${JSON.stringify(`${root}/`)}+name);m=$modules.get(name)}`,
    'if(m.exports===void 0){m.exports={};m.evaluate(m.exports)}return m.exports};\n',
    ...definitions,
    // oclif expects a script to export the command class.
    `const $all=$take(${JSON.stringify(name)});module.exports=$all.default??$all;\n`,
  ].join('')
  // Throws for a kind of import or export that the code below does not handle.
  compileFunction(text)
  return text
}

/** Returns the module's code with requires and plain properties instead of imports and exports. */
function body(name: string, text: string): string {
  const folder = dirname(name)
  const taken = (path: string): string => `$take(${JSON.stringify(posix.join(folder, path))})`
  let rest = text
  const imports: string[] = []
  for (;;) {
    const found = /^\s*import(?:\{([^}]*)\}from)?"(\.[^"]*)";/.exec(rest)
    if (!found) break
    const [all, names, path = ''] = found
    const bound = names?.replaceAll(' as ', ':')
    imports.push(bound === undefined ? `${taken(path)};` : `const{${bound}}=${taken(path)};`)
    rest = rest.slice(all.length)
  }
  const [, names] = /export\{([^}]*)\};\s*$/.exec(rest) ?? []
  const code = rest
    .replace(/export\{[^}]*\};\s*$/, '')
    .replace(/export default (require_\w+\(\));\s*$/, '$exports.default=$1;')
    .replaceAll(/\bimport\("(\.[^"]*)"\)/g, (_, path: string) => `Promise.resolve().then(()=>${taken(path)})`)
    // A package that is built separately.
    .replaceAll(/\bimport\("([^".][^"]*)"\)/g, (_, name: string) => {
      return `Promise.resolve().then(()=>$take(${JSON.stringify(`packages/${posix.basename(name)}.js`)}))`
    })
  return imports.join('') + lazyBuiltins(code) + exported(names)
}

function exported(names: string | undefined): string {
  return (names ?? '')
    .split(',')
    .filter(Boolean)
    .map((one) => {
      const [, own, outer = own] = /^(\S+)(?: as (\S+))?$/.exec(one) ?? []
      return `$exports.${outer}=${own};`
    })
    .join('')
}

/** Replaces `hash()` of an import by `builtin().hash()`: node:crypto alone takes as long to load as a whole command. */
function lazyBuiltins(code: string): string {
  const declared = code.replaceAll(
    /\b(import_node_\w+)=__toESM\(require_(node_\w+)\(\)(?:,1)?\)/g,
    (_, name: string, module: string) => `${name}=$builtin(${JSON.stringify(builtinOf(module))})`,
  )
  return lazyRequires(declared.replaceAll(/\b(import_node_\w+)(?:\.default\b|(?=\.))/g, '($1())'))
}

/** The same for TypeScript's output of `import { hash }` with require(): `node_crypto_1=require_node_crypto()`. */
function lazyRequires(code: string): string {
  const declaration = /\b(node_\w+_\d+)=require_(node_\w+)\(\)/g
  const modules = new Map<string, string[]>()
  for (const [, name = '', module = ''] of code.matchAll(declaration))
    modules.set(name, [...(modules.get(name) ?? []), builtinOf(module)])
  // In two modules of one chunk, the same name may have two meanings. Such names are not changed.
  const one = new Set(
    [...modules.keys()].filter((name) => {
      const found = modules.get(name)
      const assigned = code.split(new RegExp(`\\b${name}=(?!=)`)).length - 1
      return new Set(found).size === 1 && assigned === found?.length
    }),
  )
  return code
    .replaceAll(declaration, (all, name: string) =>
      one.has(name) ? `${name}=$builtin(${JSON.stringify(modules.get(name)![0])})` : all,
    )
    .replaceAll(/\b(node_\w+_\d+)(?=\.)/g, (name) => (one.has(name) ? `(${name}())` : name))
}

/** esbuild names the import of node:fs/promises node_fs_promises, or node_fs_promises2 where the first name is taken. */
function builtinOf(name: string): string {
  const nameOf = (path: string): string => `node_${path.replace('node:', '').replaceAll('/', '_')}`
  const path =
    builtinModules.find((one) => nameOf(one) === name) ??
    builtinModules.find((one) => nameOf(one) === name.replace(/\d+$/, ''))
  if (path === undefined) throw new Error(`${name} is no module of Node`)
  return path.startsWith('node:') ? path : `node:${path}`
}
