import { buildExecutable } from './release/executable.ts'

// `npm run dist [-- FILE]`: builds release/kcert-linux-x64, kcert and Node in one file, for this machine. `npm run release`
// builds all files of a release.

if (process.platform !== 'linux' || process.arch !== 'x64')
  throw new Error(
    `this command builds an executable for linux-x64, and this is ${process.platform}-${process.arch}`,
  )
const target = process.argv[2] ?? 'release/kcert-linux-x64'
await buildExecutable('x64', target)
process.stdout.write(`${target}\n`)
