import { join } from 'node:path'
import { certificateFolder } from './certificates.ts'
import type { Contender } from './measure.ts'
import { peer } from './peers.ts'
import type { Suite } from './suite.ts'

const count = 10_000

/** A folder of 10,000 certificates and their CA: read, linked to the CA by signature, and printed by expiry. */
export function bulkSuite(folder: string): Suite {
  const { root } = certificateFolder(join(folder, 'bulk'), count)
  const goLoop = peer('goloop')
  if (!goLoop) throw new Error('the bench needs its Go loop: npm run bench:peers')
  const contenders: Contender[] = [
    { name: 'Go loop over crypto/x509', command: [goLoop, root] },
    { name: 'kcert inspect DIR', command: [process.execPath, 'bin/run.js', 'inspect', root], exits: [0, 3] },
    {
      name: 'kcert inspect DIR -o json',
      command: [process.execPath, 'bin/run.js', 'inspect', root, '-o', 'json'],
      exits: [0, 3],
    },
  ]
  return {
    title: `${count.toLocaleString('en')} certificates and their CA in a folder, each verified by signature`,
    baseline: 'Go loop over crypto/x509',
    targets: { 'kcert inspect DIR': 1.5 },
    memoryTargets: { 'kcert inspect DIR': 200 },
    contenders,
    runs: { warmup: 1, min: 8 },
  }
}

/** A tenth of the folder by the tools that take one file each: a process a file, in a shell loop as people write it. */
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
