import { join } from 'node:path'
import { certificateFolder } from './certificates.ts'
import { peer } from './peers.ts'
import type { Suite } from './suite.ts'

const count = 10_000

/** A folder of 10,000 certificates and their CA: read, checked, sorted and printed as a table by expiry. */
export function bulkTableSuite(folder: string): Suite {
  const { root } = certificateFolder(join(folder, 'bulk-table'), count)
  const baseline = 'Go loop over crypto/x509, a table'
  return {
    title: `${count.toLocaleString('en')} certificates in a folder, as a table by expiry`,
    baseline,
    targets: { 'kcert inspect DIR': 1.5 },
    memoryTargets: { 'kcert inspect DIR': 200 },
    contenders: [
      { name: baseline, command: [goLoop(), 'table', root] },
      { name: 'kcert inspect DIR', command: kcertInspect(root), exits: [0, 3] },
    ],
    runs: { warmup: 1, min: 10 },
  }
}

/** Ten times as many, on both processors where the peer supports that. */
export function bulkAllSuite(folder: string): Suite {
  const many = 10 * count
  const { root } = certificateFolder(join(folder, 'bulk-all'), many)
  const baseline = 'Go program, a goroutine for each processor'
  return {
    title: `${many.toLocaleString('en')} certificates in a folder, as a table by expiry`,
    baseline,
    targets: { 'kcert inspect DIR': 1.5 },
    memoryTargets: { 'kcert inspect DIR': 400 },
    contenders: [
      { name: baseline, command: [goLoop(), 'table-all', root] },
      { name: 'Go loop over crypto/x509, a table', command: [goLoop(), 'table', root] },
      { name: 'kcert inspect DIR', command: kcertInspect(root), exits: [0, 3] },
    ],
    runs: { warmup: 1, min: 3 },
  }
}

/** The same with every field, both digests, and each certificate's issuer found and verified by its signature. */
export function bulkReportSuite(folder: string): Suite {
  const { root } = certificateFolder(join(folder, 'bulk-report'), count)
  const baseline = 'Go loop over crypto/x509, every field, issuers verified'
  return {
    title: `${count.toLocaleString('en')} certificates in a folder, every field, issuers verified by signature`,
    baseline,
    targets: {},
    contenders: [
      { name: baseline, command: [goLoop(), 'report', root] },
      { name: 'kcert inspect DIR -o json', command: kcertInspect(root, '-o', 'json'), exits: [0, 3] },
    ],
    runs: { warmup: 1, min: 5 },
  }
}

function goLoop(): string {
  const path = peer('goloop')
  if (!path) throw new Error('the bench needs its Go loop: npm run bench:peers')
  return path
}

function kcertInspect(...args: readonly string[]): string[] {
  return [process.execPath, 'bin/run.js', 'inspect', ...args]
}

/** A tenth of the folder, for tools that take one file each: a process for each file, in a shell loop. */
export function oneProcessAFileSuite(folder: string): Suite {
  const { root } = certificateFolder(join(folder, 'tenth'), count / 10)
  const loop = (command: string) => [
    'sh',
    '-c',
    `for f in ${root}/leaf-*.pem; do ${command} >/dev/null || exit 1; done`,
  ]
  const byTool: [program: string | undefined, name: string, command: (path: string) => string][] = [
    ['openssl', 'openssl x509, one process a file', (path) => `${path} x509 -in $f -noout -text`],
    [peer('cfssl'), 'cfssl certinfo, one process a file', (path) => `${path} certinfo -cert $f`],
    [
      peer('step'),
      'step certificate inspect, one process a file',
      (path) => `${path} certificate inspect $f`,
    ],
  ]
  return {
    title: `${(count / 10).toLocaleString('en')} certificates by tools that take one file each`,
    baseline: 'kcert inspect DIR',
    targets: {},
    contenders: [
      {
        name: 'kcert inspect DIR',
        command: [process.execPath, 'bin/run.js', 'inspect', root],
        exits: [0, 3],
      },
      ...byTool.flatMap(([program, name, command]) =>
        program ? [{ name, command: loop(command(program)) }] : [],
      ),
    ],
    runs: { warmup: 0, min: 3 },
  }
}
