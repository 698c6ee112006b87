import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publish, tableOf } from '../reliability/page.ts'
import { Coverage } from './coverage.ts'
import { Fuzzer, type Way } from './fuzzer.ts'

// `npm run fuzz [-- EXECUTIONS] [-- READER...] [-- --seed N] [-- --write]`: runs EXECUTIONS (default 1,000,000) in all readers
// together, or in the given ones. A tenth of them are guided by coverage. Ctrl-C stops it and reports the completed part. The
// findings are in the printed folder, one input per file.

const words = process.argv.slice(2)
const seed = words.includes('--seed') ? Number(words[words.indexOf('--seed') + 1]) : 20261122
const total = Number(
  words.find((word, index) => /^\d+$/.test(word) && words[index - 1] !== '--seed') ?? 1_000_000,
)

/** Shares of all executions: fast readers get more. */
const shares: Readonly<Record<string, number>> = {
  DER: 0.3,
  PEM: 0.45,
  'PKCS#12': 0.05,
  kubeconfig: 0.05,
  policy: 0.03,
  journal: 0.12,
}
const ways: Readonly<Record<Way, number>> = { guided: 0.1, blind: 0.85, 'fast-check': 0.05 }
// Each reader runs in this many rounds, so that a stopped run has done a part of each.
const rounds = 20
// Most inputs are rejected, and the stack traces would take most of the time.
Error.stackTraceLimit = 4

let isStopped = false
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => (isStopped = true))

// Modules loaded before this are not measured.
const coverage = new Coverage(/\/src\//)
const { readers } = await import('./readers.ts')
const named = readers.filter(({ name }) => words.includes(name))
const chosen = named.length > 0 ? named : readers
const fuzzers = chosen.map((reader, index) => new Fuzzer(reader, seed + index, coverage))
for (let round = 1; round <= rounds && !isStopped; round++) {
  for (const [index, { name }] of chosen.entries()) {
    const count = named.length > 0 ? total / named.length : total * shares[name]!
    for (const [way, share] of Object.entries(ways) as [Way, number][]) {
      await fuzzers[index]!.run(way, Math.ceil((count * share) / rounds), () => isStopped)
      // Allows a signal handler to run.
      await new Promise((done) => setImmediate(done))
    }
  }
  const done = fuzzers.map(
    ({ done: { reader, executions, corpus, findings } }) =>
      `${reader} ${executions} (corpus ${corpus}, found ${findings.length})`,
  )
  process.stderr.write(`${round} of ${rounds}: ${done.join(', ')}\n`)
}

const folder = join('coverage', 'fuzz')
let found = 0
for (const { done } of fuzzers)
  for (const { what, input } of done.findings) {
    mkdirSync(folder, { recursive: true })
    const file = join(folder, `${done.reader.replace(/\W/g, '')}-${++found}`)
    writeFileSync(file, input)
    process.stderr.write(`${file}: ${what}\n`)
  }
const rows = fuzzers.map(({ done: { reader, executions, accepted, corpus, findings } }, index) => [
  reader,
  executions,
  accepted,
  chosen[index]!.corpus.length,
  corpus,
  findings.length,
])
const sum = (column: number): number => rows.reduce((all, row) => all + Number(row[column]), 0)
publish(
  'fuzz',
  tableOf(
    ['reader', 'executions', 'accepted', 'seeds', 'inputs that reached new code', 'findings'],
    [...rows, ['all', ...[1, 2, 3, 4, 5].map(sum)]],
  ),
)
process.exitCode = found === 0 ? 0 : 1
