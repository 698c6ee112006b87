import { closure, installedPaths, type Locked, nameOf, readLock } from '../lock.ts'
import { generatedNote, table } from './page.ts'

/** The reason for each direct dependency, and where it may be used. `npm run check` fails for a dependency without a reason. */
const reasons: Readonly<Record<string, string>> = {
  '@kubernetes/client-node':
    'watches, types and authentication of the API server; in src/cluster/ alone, cut down by the build (scripts/lean-client-node.ts)',
  '@oclif/core': 'commands, flags and help',
  chalk: 'colors; in src/output/ alone',
  inquirer: 'questions on a terminal; in src/cli/prompts.ts alone',
  'node-forge':
    'RC2 in old PKCS#12 files, which OpenSSL 3 no longer has; in src/x509/pkcs12.ts alone, and makes no trust decision',
  'p-map': 'runs many asynchronous calls, a limited number at a time',
  valibot: 'schemas of input files and of the JSON output',
  ws: "WebSockets with kcert's own TLS connections and headers, for exec in pods; in src/cluster/ alone; client-node installs it too",
  yaml: 'YAML that the plain reader does not read (decision 4), and edits that keep comments',
  '@biomejs/biome': 'lint and format',
  '@stryker-mutator/instrumenter': 'the mutants of `npm run mutate`',
  '@types/node': 'types of Node',
  '@types/node-forge': 'types of node-forge',
  '@valibot/to-json-schema': 'docs/schemas/ from the schemas in the source',
  '@vitest/coverage-v8': 'coverage of the tests',
  ajv: 'validates the JSON output of commands with docs/schemas/',
  'ajv-formats': 'dates and times for ajv',
  esbuild: 'the bundle in dist/',
  'fast-check': 'random inputs for tests',
  knip: 'finds code and dependencies that nothing uses',
  node: 'Node 24 for the scripts, instead of the Node of the machine',
  postject: 'puts the program into the single executable',
  typescript: 'types',
  vitest: 'the test runner',
}

/** Returns docs/dependencies.md: every direct dependency with its reason and the packages that it adds, counted from the lock. */
export function dependencyPage(): string {
  const packages = readLock()
  const root = packages['']!
  const locked = Object.entries(packages).filter(([path]) => path !== '')
  const paths = installedPaths(packages)
  const installed = locked.filter(([path]) => paths.has(path))
  const rows = (direct: Readonly<Record<string, string>> = {}): string[][] =>
    Object.entries(direct).map(([name, version]) => {
      const brought = closure(packages, `node_modules/${name}`)
      return [
        `\`${name}\` ${version}`,
        licenceOf(packages[`node_modules/${name}`]!),
        String(brought.size),
        reasonOf(name),
      ]
    })
  const head = ['package', 'license', 'packages that it installs, itself included', 'why']
  const scripts = locked.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => nameOf(path))
  return [
    '# Dependencies',
    generatedNote('package-lock.json and scripts/docs/dependencies.ts'),
    `${installed.length} packages are installed with kcert, ${Object.keys(root.dependencies ?? {}).length} of them in package.json. The program that runs is the bundle in dist/.
esbuild puts the imported modules into it. ${locked.length - installed.length} more packages are locked for development, including those of other platforms. Versions are
exact, and package-lock.json contains the SHA-512 of each. \`npm run sbom\` writes the same as CycloneDX.`,
    `**Install scripts.** None of the ${installed.length} has one, so \`npm install --ignore-scripts\` is enough. In development ${scripts.map((name) => `\`${name}\``).join(' and ')} have one.
esbuild finds its binary without it. \`node\` is for machines whose Node is older than 24.15.`,
    `## Installed with kcert\n\n${table(head, rows(root.dependencies))}`,
    `Licenses of all ${installed.length}:\n\n${licenceTable(installed.map(([, one]) => one))}`,
    `## For development\n\n${table(head, rows(root.devDependencies))}`,
  ]
    .join('\n\n')
    .concat('\n')
}

function reasonOf(name: string): string {
  const reason = reasons[name]
  if (reason === undefined) throw new Error(`scripts/docs/dependencies.ts gives no reason for ${name}`)
  return reason
}

function licenceOf({ license }: Locked): string {
  return license ?? 'not in the lock file'
}

function licenceTable(list: readonly Locked[]): string {
  const counts = Map.groupBy(list, licenceOf)
  const sorted = [...counts].sort(
    ([a, { length: one }], [b, { length: other }]) => other - one || (a < b ? -1 : 1),
  )
  return table(
    ['license', 'packages'],
    sorted.map(([licence, { length }]) => [licence, String(length)]),
  )
}
