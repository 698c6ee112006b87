import { globSync, readFileSync } from 'node:fs'
import { layers, testFolders } from './folders.ts'
import { importsOf } from './imports.ts'

// Walks every import of src/ and prints the chain that breaks a rule: which folder may import which (scripts/folders.ts), and
// where each package and each system interface may be used.

/** Code that is allowed only in certain places. */
const confined: readonly { what: RegExp; where: RegExp; name: string }[] = [
  { what: /from 'node-forge'|import\('node-forge'\)/, where: /^src\/x509\/pkcs12\.ts$/, name: 'node-forge' },
  {
    what: /from '@kubernetes\/client-node|import\('@kubernetes\/client-node/,
    where: /^src\/cluster\//,
    name: '@kubernetes/client-node',
  },
  { what: /from 'inquirer'|import\('inquirer'\)/, where: /^src\/cli\/prompts\.ts$/, name: 'inquirer' },
  { what: /from 'chalk'|import\('chalk'\)/, where: /^src\/output\//, name: 'chalk' },
  { what: /\bDate\.now\(|\bnew Date\(\)/, where: /^src\/system\/clock\.ts$/, name: 'the clock' },
  {
    what: /\bprocess\.env\b|\{[^}]*\benv\b[^}]*\} = process\b/,
    where: /^src\/(app|cli)\//,
    name: 'process.env',
  },
  {
    what: /\bprocess\.(?!env\b)\w+/,
    where: /^src\/((?:app|cli)\/|(?:main|executable)\.ts$|system\/)/,
    name: 'process',
  },
  {
    what: /from 'node:(fs|child_process|http|https|net|tls|dgram|os)/,
    where: /^src\/(system|cluster|node|site|rotation-io|renewal-io|tls|app|cli)\/|^src\/main\.ts$/,
    name: 'files, processes and sockets',
  },
  {
    what: /\b(?:writeFile|appendFile|rename|copyFile|cp|link|symlink|unlink|rm|rmdir|mkdir|truncate|ftruncate|chmod|fchmod|chown|utimes)Sync\(|\bcreateWriteStream\(|from 'node:fs\/promises'/,
    // The control sockets of ssh are in a separate temporary folder. Compiled code is a cache.
    where: /^src\/(system\/|node\/ssh\.ts$|cli\/program-scripts\.ts$)/,
    name: 'changing a file',
  },
  {
    what: /\.replace(?:All)?\([^\n]*(?<!\$)\{\(?(?:\?:)?(?:node|address)/,
    where: /^src\/rotation\/argument-filling\.ts$/,
    name: 'filling in {node} and {address}',
  },
  {
    // Only openKubeconfig (src/kubeconfig/open.ts) reports what client-go refuses. inspect and the merged kubeconfig report it
    // themselves.
    what: /\breadKubeconfig\(/,
    where: /^src\/(kubeconfig\/|inspection\/read-kubeconfig\.ts$|cluster\/kubeconfig-files\.ts$)/,
    name: 'reading a kubeconfig by another way than openKubeconfig',
  },
  {
    what: /\b(?:readFile|read|readv|open)Sync\b|\b(?:createReadStream|openAsBlob)\b|\breadFile\b.*from 'node:fs/,
    // All other code reads through readFile (src/system/files.ts), which accepts regular files up to a size limit. Code that
    // writes reads back through its own descriptor. Locks and compiled code have their own rules.
    where:
      /^src\/(system\/(files|pipes|trusted-file|atomic-file|append-file|lock)\.ts$|cli\/program-scripts\.ts$)/,
    name: 'opening a file to read it',
  },
]

const files = globSync('src/**/*.ts', { exclude: (path) => path.endsWith('.test.ts') }).sort()
const imports = new Map(files.map((file) => [file, importsOf(file)]))
const offences = [
  ...files.flatMap(layerOffences),
  ...files.flatMap(confinementOffences),
  ...cycles(),
  ...idleRules(),
  ...strayTests(),
]

for (const offence of offences) process.stderr.write(`${offence}\n`)
process.stdout.write(`${files.length} files, ${offences.length} offences\n`)
process.exitCode = offences.length === 0 ? 0 : 1

function folderOf(file: string): string {
  const [, folder = '', rest] = file.split('/')
  return rest === undefined ? '' : folder
}

function layerOffences(file: string): string[] {
  const from = folderOf(file)
  const rule = layers[from]
  if (from === '') return []
  if (!rule) return [`${file}: folder src/${from} has no rule in scripts/folders.ts`]
  return imports.get(file)!.flatMap(({ target, typeOnly }) => {
    const to = folderOf(target)
    // The manifest and package.json are data that the build bundles.
    const isData = target.endsWith('.json')
    const allowed =
      isData || to === from || mayOf(from).includes(to) || (typeOnly && rule.types?.includes(to))
    return allowed ? [] : [`${chainTo(file).join(' → ')} → ${target}: src/${from} may not import src/${to}`]
  })
}

function mayOf(folder: string): readonly string[] {
  const { may = [] } = layers[folder] ?? {}
  const folders = Object.keys(layers)
  return may === 'everything below' ? folders.slice(folders.indexOf(folder) + 1) : may
}

/** Returns the permissions that no file uses, so that the map shows the current state. */
function idleRules(): string[] {
  const used = new Map<string, boolean>()
  for (const [file, its] of imports) {
    for (const { target, typeOnly } of its) {
      const edge = `${folderOf(file)} ${folderOf(target)}`
      used.set(edge, used.get(edge) === true || !typeOnly)
    }
  }
  return Object.entries(layers).flatMap(([from, { may, types = [] }]) => [
    ...(files.some((file) => folderOf(file) === from) ? [] : [`scripts/folders.ts: there is no src/${from}`]),
    ...(may === 'everything below' ? [] : may)
      .filter((to) => used.get(`${from} ${to}`) !== true)
      .map(
        (to) =>
          `scripts/folders.ts: src/${from} imports ${used.has(`${from} ${to}`) ? 'types alone' : 'nothing'} of src/${to}`,
      ),
    ...types
      .filter((to) => !used.has(`${from} ${to}`))
      .map((to) => `scripts/folders.ts: src/${from} imports nothing of src/${to}`),
  ])
}

/** Returns tests in folders that are missing in scripts/folders.ts, and folders there without tests. */
function strayTests(): string[] {
  const tests = globSync('test/**/*.test.ts')
  const folderOfTest = (file: string) => file.split('/')[1] ?? ''
  return [
    ...tests
      .filter((file) => testFolders[folderOfTest(file)] === undefined)
      .map((file) => `${file}: put it beside its file in src/, or its folder into scripts/folders.ts`),
    ...Object.keys(testFolders)
      .filter((folder) => !tests.some((file) => folderOfTest(file) === folder))
      .map((folder) => `scripts/folders.ts: there is no test in test/${folder}`),
  ]
}

/** Returns the import chain from a command to a file, to explain the violation. */
function chainTo(file: string): string[] {
  const queue: string[][] = files.filter((path) => path.startsWith('src/commands/')).map((path) => [path])
  const seen = new Set<string>()
  for (let chain = queue.shift(); chain; chain = queue.shift()) {
    const last = chain.at(-1)!
    if (last === file) return chain
    for (const { target } of imports.get(last) ?? []) {
      if (seen.has(target)) continue
      seen.add(target)
      queue.push([...chain, target])
    }
  }
  return [file]
}

function confinementOffences(file: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line, index) => {
    const code = line.replace(/^\s*(\/\/|\*|\/\*).*$/, '').replace(/\s\/\/ .*$/, '')
    if (/^\s*import type\b/.test(code)) return []
    return confined
      .filter(({ what, where }) => what.test(code) && !where.test(file))
      .map(({ name, where }) => `${file}:${index + 1}: ${name} belongs in ${where.source}`)
  })
}

/** Returns import cycles, including type-only imports: files in a cycle can only be read and moved together. */
function cycles(): string[] {
  const found: string[] = []
  const state = new Map<string, 'open' | 'done'>()
  const visit = (file: string, path: readonly string[]): void => {
    if (state.get(file) === 'done') return
    if (state.get(file) === 'open') {
      found.push(`cycle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`)
      return
    }
    state.set(file, 'open')
    for (const { target } of imports.get(file) ?? []) visit(target, [...path, file])
    state.set(file, 'done')
  }
  for (const file of files) visit(file, [])
  return found
}
