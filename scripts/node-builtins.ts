import { isBuiltin } from 'node:module'
import type { Plugin } from 'esbuild'

/**
 * Returns the esbuild plugin that loads Node's builtin modules with process.getBuiltinModule. An `import` reads every export
 * once, and so loads the modules behind lazy exports: `import 'node:fs'` loads all of node:stream.
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
