import { posix } from 'node:path'
import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type {
  CopiedKey,
  Expected,
  FileContent,
  FileFacts,
  KeyOf,
  NodeAccess,
  NodeCall,
} from '../pki/node-access.ts'
import { writeFailure } from './write-failure.ts'

/** As in Linux (path_resolution(7)): a path with more symbolic links than this is a loop. */
const mostLinks = 40

/** The target of a path in the tree. */
interface Place {
  readonly asked: string
  /** The facts of the name itself, which may be a link; links in its folders are followed. */
  readonly facts: FileFacts
  /** The path with all links resolved. Undefined: the links form a loop. */
  readonly real: string | undefined
}

/**
 * Returns access to a folder of a node's files as if it were the node. Each path is below `root`, and symbolic links are followed
 * as if `root` were /, as after chroot(2). So a link of a hostile disk image never leads out of it, neither by an absolute target
 * nor by "..". Programs do not run there, so calls about processes and units throw KCERT_USAGE. The files must not change
 * meanwhile: between resolving a path and using it, another program could replace a folder with a link.
 */
export function rootedNode(node: NodeAccess, root: string): NodeAccess {
  const folder = root.replace(/\/+$/, '')
  const inside = (path: string): string => folder + path
  const outside = (path: string): string => path.slice(folder.length) || '/'

  /** Follows the links in the folders of each path; with `last`, also a link at the last component. */
  const follow = async (
    paths: readonly string[],
    last: boolean,
    call?: NodeCall,
  ): Promise<(string | undefined)[]> => {
    let now = paths.map((path): string => posix.resolve('/', path))
    for (let round = 0; round <= mostLinks; round++) {
      const steps = now.map((path) => stepsOf(path, last))
      const all = [...new Set(steps.flat())]
      const facts = all.length === 0 ? [] : await node.statFiles(all.map(inside), only(call))
      const targets = new Map(facts.map(({ path, linkTarget }) => [outside(path), linkTarget]))
      const link = (index: number): string | undefined =>
        steps[index]?.find((step) => targets.get(step) !== undefined)
      if (now.every((_, index) => link(index) === undefined)) return now
      now = now.map((path, index) => {
        const at = link(index)
        const target = at === undefined ? undefined : targets.get(at)
        if (at === undefined || target === undefined) return path
        return posix.resolve(posix.dirname(at), target, `.${path.slice(at.length)}`)
      })
      if (round === mostLinks) return now.map((path, index) => (link(index) === undefined ? path : undefined))
    }
    return now
  }

  const placesOf = async (paths: readonly string[], call?: NodeCall): Promise<Place[]> => {
    const names = await follow(paths, false, call)
    const known = names.flatMap((name) => name ?? [])
    const facts = await node.statFiles(known.map(inside), only(call))
    const reals = await follow(known, true, call)
    return paths.map((asked, index): Place => {
      const name = names[index]
      const at = name === undefined ? -1 : known.indexOf(name)
      return { asked, facts: facts[at] ?? { path: asked, found: 'absent' }, real: reals[at] }
    })
  }

  /** Reads the targets of the paths, each under the requested path and with its own link target. */
  const readAt = async <File extends FileFacts | FileContent>(
    paths: readonly string[],
    read: (real: readonly string[]) => Promise<File[]>,
    call?: NodeCall,
  ): Promise<(File | Extract<FileFacts, { readonly found: 'absent' }>)[]> => {
    const places = await placesOf(paths, call)
    const files = await read(places.flatMap(({ real }) => (real === undefined ? [] : [inside(real)])))
    const found = files.values()
    return places.map(({ asked, facts: { linkTarget, linkedAt }, real }) => {
      const file = real === undefined ? undefined : found.next().value
      return {
        ...(file ?? { found: 'absent' as const }),
        path: asked,
        ...given({ linkTarget, linkedAt }),
      }
    })
  }

  /** Returns the path with the links in its folders followed, for calls that act on the name itself. */
  const named = async (path: string, call?: NodeCall): Promise<string> => {
    const [name] = await follow([path], false, call)
    if (name === undefined) throw inLoop(node.name, path)
    return inside(name)
  }

  const led = async (path: string, call?: NodeCall): Promise<string> => {
    const [real] = await follow([path], true, call)
    if (real === undefined) throw inLoop(node.name, path)
    return inside(real)
  }

  /** Returns the target of a write and its expected state. The link is compared here, because the node would follow it. */
  const written = async (path: string, replaces: Expected, call?: NodeCall) => {
    const [place] = await placesOf([path], call)
    if (place?.real === undefined) throw inLoop(node.name, path)
    if (typeof replaces === 'string' || !('linkTarget' in replaces))
      return { to: inside(place.real), replaces }
    const { linkTarget, found } = place.facts
    if (linkTarget === replaces.linkTarget) return { to: inside(place.real), replaces: 'anything' as const }
    const state = linkTarget !== undefined ? `link:${linkTarget}` : found === 'absent' ? 'absent' : 'other'
    throw writeFailure(node.name, path, 'changed', state)
  }

  const ledKey = async <Key extends KeyOf | CopiedKey>(key: Key, call?: NodeCall): Promise<Key> => {
    const { to, replaces } = await written(key.path, key.replaces, call)
    return { ...key, path: to, replaces }
  }

  const matches = async (pattern: string, call?: NodeCall): Promise<string[]> => {
    const at = pattern.search(/[*?[]/)
    const head = at === -1 ? pattern : pattern.slice(0, at)
    const start = posix.dirname(`${head}x`)
    const rest = pattern.slice(start === '/' ? 1 : start.length + 1)
    const [real] = await follow([start], true, call)
    if (real === undefined) return []
    const base = real === '/' ? folder : inside(real)
    const paths = await node.matchPaths([`${base.replace(/[*?[]/g, '[$&]')}/${rest}`], call)
    const found = paths.map((path) => path.slice(base.length + 1))
    // A folder that matched a pattern may be a link, so the matches in it may be outside.
    const direct = await follow(
      found.map((name) => posix.join(real, name)),
      false,
      call,
    )
    return found
      .filter((name, index) => direct[index] === posix.join(real, name))
      .map((name) => posix.join(start, name))
  }

  const nothingRuns = (): never => {
    throw new KcertError('KCERT_USAGE', `the folder ${root} has no processes`, {
      why: 'it is a copy of a node or the mounted disk of a machine',
    })
  }
  return {
    name: node.name,
    identity: (call) => node.identity(call),
    run: nothingRuns,
    readFiles: (paths, call) => readAt(paths, (real) => node.readFiles(real, call), call),
    statFiles: (paths, call) => readAt(paths, (real) => node.statFiles(real, call), call),
    listFolder: async (path, call) => ({ ...(await node.listFolder(await led(path, call), call)), path }),
    matchPaths: async (patterns, call) => {
      const found: string[] = []
      for (const pattern of patterns) found.push(...(await matches(pattern, call)))
      return found
    },
    writeFile: async (path, content, options) => {
      const { to, replaces } = await written(path, options.replaces, options)
      const key = options.key && (await ledKey(options.key, options))
      const done = await node.writeFile(to, content, { ...options, replaces, ...given({ key }) })
      return { ...done, path: outside(done.path) }
    },
    copyFile: async (from, path, options) => {
      const { to, replaces } = await written(path, options.replaces, options)
      const key = options.key && {
        ...(await ledKey(options.key, options)),
        from: await led(options.key.from, options),
      }
      const done = await node.copyFile(await led(from, options), to, {
        ...options,
        replaces,
        ...given({ key }),
      })
      return { ...done, path: outside(done.path) }
    },
    linkFile: async (path, target, options) => node.linkFile(await named(path, options), target, options),
    removeFile: async (path, options) => node.removeFile(await named(path, options), options),
    makeFolder: async (path, options) => node.makeFolder(await led(path, options), options),
    removeFolder: async (path, call) => node.removeFolder(await named(path, call), call),
    unit: nothingRuns,
    restartUnit: nothingRuns,
    processes: async () => [],
    podProcesses: async () => [],
    clock: (call) => node.clock(call),
    freeSpace: async (path, call) => ({
      ...(await node.freeSpace(await led(path, call), call)),
      path,
    }),
    close: () => node.close(),
  }
}

/** Returns the folders of a path, from the top, and with `last` the path itself. */
function stepsOf(path: string, last: boolean): string[] {
  const names = path.split('/').filter((name) => name !== '')
  const steps = names.map((_, index) => `/${names.slice(0, index + 1).join('/')}`)
  return last ? steps : steps.slice(0, -1)
}

/** Returns the limits of a call, without its file settings. */
function only(call: NodeCall | undefined): NodeCall {
  const { timeoutMs, signal } = call ?? {}
  return { ...(timeoutMs !== undefined && { timeoutMs }), ...(signal !== undefined && { signal }) }
}

function inLoop(node: string, path: string): KcertError {
  return writeFailure(node, path, 'dangling', '')
}
