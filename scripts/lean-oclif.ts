import { readFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import type { Plugin } from 'esbuild'

// A running command needs oclif's Command class and its parser, which are small. Their imports are ten times larger: plugin
// loading, help, spinners, colours for debug output. src/main.ts uses none of these, so the build replaces them with these short
// modules. test/scripts/starts.test.ts runs the same command lines with both.

/** Replacements for the help of one command, which uses more of oclif and, of colours, only bold and underlined. */
const helpStandIns: Readonly<Record<string, string>> = {
  ansis: 'exports.strip = require("node:util").stripVTControlCharacters',
  'config/ts-path': '',
  'config/util': '',
  'errors/error': 'exports.error = (text) => { throw new Error(text) }',
  'module-loader': '',
  'util/cache-default-value': '',
  ux: '',
  'ux/theme': `const styles = { bold: [1, 22], underline: [4, 24] }
exports.colorize = (style, text) => style && globalThis.kcertHelpIsStyled ? "\\x1b[" + styles[style][0] + "m" + text + "\\x1b[" + styles[style][1] + "m" : text`,
  screen: 'exports.stdtermwidth = 80',
}

const library = `${sep}@oclif${sep}core${sep}lib`

/** Module of @oclif/core, or a package that it imports → its replacement in the bundles of the commands. */
const commandStandIns: Readonly<Record<string, string>> = {
  // The passed config is used unchanged: the small config of src/cli/oclif-config.ts, or oclif's own.
  config: 'exports.Config = class Config { static async load(config) { return config } }',
  // src/cli/help.ts handles deprecated commands and --help.
  help: 'exports.Help = class Help {}; exports.loadHelpClass = async () => exports.Help',
  'help/index': 'exports.Help = class Help {}; exports.getHelpFlagAdditions = () => []',
  'help/util':
    'exports.normalizeArgv = () => []; exports.formatCommandDeprecationWarning = exports.formatFlagDeprecationWarning = () => ""',
  ux: 'exports.colorize = (_, text) => text; exports.ux = { action: { stop() {} }, colorize: exports.colorize, stdout() {}, stderr() {} }',
  'ux/theme': 'exports.colorize = (_, text) => text',
  // src/output/error.ts formats errors.
  'errors/handle': 'exports.handle = (error) => { throw error }',
  'errors/errors/pretty-print':
    'exports.default = () => undefined; exports.applyPrettyPrintOptions = (error) => error',
  // oclif's version is not shown, and Args.file and Args.directory are not used, so node:fs/promises stays unloaded.
  cache:
    'const one = new Map([["@oclif/core", { name: "@oclif/core", version: "" }]]); exports.__esModule = true; exports.default = { getInstance: () => one }',
  'util/fs': 'exports.dirExists = exports.fileExists = async (input) => input',
  // Accessing the streams creates them, which takes a fifth of the start of an empty Node.
  screen: 'exports.stdtermwidth = exports.errtermwidth = 80',
  logger:
    'const silent = () => {}; exports.makeDebug = () => silent; exports.getLogger = () => ({ debug: silent }); exports.setLogger = silent',
  '#supports-color': 'exports.stdout = exports.stderr = false',
  'clean-stack': 'module.exports = (stack) => stack',
  'wrap-ansi': 'module.exports = (text) => text',
  'indent-string': 'module.exports = (text) => text',
}

// On a write error of standard output, oclif ends the process with a stack trace, once for each copy of this module.
const listener = /^process\.stdout\.on\('error', \(err\) => \{[\s\S]*?^\}\);$/m

/** Returns the esbuild plugin that leaves write errors to kcert's src/cli/standard-output.ts. */
export function quietOclif(): Plugin {
  return {
    name: 'quiet-oclif',
    setup(build) {
      build.onLoad({ filter: /@oclif[/\\]core[/\\]lib[/\\]command\.js$/ }, ({ path }) => {
        const source = readFileSync(path, 'utf8')
        if (!listener.test(source)) throw new Error(`${path} has no listener on standard output any more`)
        return { contents: source.replace(listener, ''), loader: 'js' }
      })
    },
  }
}

/** Returns the esbuild plugin that excludes oclif's start-up code from a bundle. For help, it keeps oclif's help of commands. */
export function leanOclif(kind: 'command' | 'help' = 'command'): Plugin {
  const standIns = kind === 'help' ? helpStandIns : commandStandIns
  return {
    name: 'lean-oclif',
    setup(build) {
      // chalk gets the colour level explicitly each time, so it does not inspect the streams, for which it loads node:tty.
      build.onResolve({ filter: /^#supports-color$/ }, ({ path }) => ({ path, namespace: 'lean-oclif' }))
      build.onResolve({ filter: /./ }, ({ path, importer }) => {
        if (!importer.includes(library)) return undefined
        const name = path.startsWith('.') ? moduleName(join(dirname(importer), path)) : path
        return Object.hasOwn(standIns, name)
          ? { path: name, namespace: 'lean-oclif', sideEffects: false }
          : undefined
      })
      build.onLoad({ filter: /./, namespace: 'lean-oclif' }, ({ path }) => ({
        contents: standIns[path] ?? '',
        loader: 'js',
      }))
    },
  }
}

function moduleName(path: string): string {
  return path.slice(path.lastIndexOf(library) + library.length + 1).replaceAll(sep, '/')
}
