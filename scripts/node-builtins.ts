import { isBuiltin } from 'node:module'
import type { Plugin } from 'esbuild'

/**
 * Returns the esbuild plugin that takes Node's own modules by process.getBuiltinModule. An `import` of them reads every
 * export once, and so loads whatever stands behind a lazy one: `import 'node:fs'` brings all of node:stream.
 */
export function nodeBuiltins(): Plugin {
  return {
    name: 'node-builtins',
    setup(build) {
      build.onResolve({ filter: /^[a-z0-9:_/]+$/ }, ({ path }) =>
        isBuiltin(path) ? { path, namespace: 'node-builtins', sideEffects: false } : undefined,
      )
      build.onLoad({ filter: /./, namespace: 'node-builtins' }, ({ path }) => ({
        contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)})`,
        loader: 'js',
      }))
    },
  }
}
