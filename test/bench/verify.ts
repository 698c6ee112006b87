import { join, resolve } from 'node:path'
import { certificateFolder } from './certificates.ts'
import { peer } from './peers.ts'
import type { Suite } from './suite.ts'

/** One leaf and its CA, one process, one result. */
export function verifySuite(folder: string): Suite {
  const { root, leaf } = certificateFolder(join(folder, 'verify'), 1)
  const ca = join(root, 'ca.pem')
  const goLoop = peer('goloop')
  if (!goLoop) throw new Error('the bench needs its Go loop: npm run bench:peers')
  const baseline = 'openssl verify'
  return {
    title: 'One chain verified, one process for each run',
    baseline,
    targets: {},
    contenders: [
      { name: baseline, command: ['openssl', 'verify', '-CAfile', ca, leaf] },
      { name: 'Go program', command: [goLoop, 'verify', ca, leaf] },
      {
        name: 'kcert verify',
        command: [process.execPath, resolve('bin/run.js'), 'verify', leaf, '--roots', ca],
      },
    ],
    runs: { warmup: 3, min: 30 },
  }
}
