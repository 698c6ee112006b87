import { spawnSync } from 'node:child_process'
import { publish, tableOf } from './page.ts'

// `npm run differential [-- go|openssl] [-- CHAINS] [-- --write]`: the suites of test/differential, each with the given number of
// random
// chains (default 100,000). Each few thousand have their own seed, so no run needs much memory and other work on the machine can
// run
// in between.

const chains = Number(process.argv.find((word) => /^\d+$/.test(word)) ?? 100_000)
// CI uses another seed, so these are other chains.
const firstSeed = 1

interface Peer {
  readonly name: string
  readonly suite: string
  readonly variable: string
  readonly chainsOfASeed: number
}

// Another command, such as flock, can be put before each part.
const prefix = process.env.KCERT_BEFORE?.split(' ') ?? []
const peers: readonly Peer[] = [
  { name: 'Go crypto/x509', suite: 'go', variable: 'KCERT_CHAINS', chainsOfASeed: 5_000 },
  { name: 'OpenSSL', suite: 'openssl', variable: 'KCERT_OPENSSL_CHAINS', chainsOfASeed: 1_000 },
]

const named = peers.filter(({ suite }) => process.argv.includes(suite))
for (const peer of named.length > 0 ? named : peers) {
  const tally = { chains: 0, accepted: 0, changed: 0, changedAccepted: 0, failed: 0 }
  for (let seed = firstSeed; tally.chains < chains; seed++) {
    const count = Math.min(peer.chainsOfASeed, chains - tally.chains)
    const output = run(peer, seed, count)
    tally.chains += count
    tally.accepted += Number(
      /chains, seed \d+: (?:.*?)(?:trusted (\d+)|(\d+) × ok)/.exec(output)?.slice(1).find(Boolean) ?? 0,
    )
    const [, changed = 0, accepted = 0] =
      /(\d+) chains with changed bytes, seed \d+: (\d+) trusted/.exec(output) ?? []
    tally.changed += Number(changed)
    tally.changedAccepted += Number(accepted)
    if (/Tests.*failed/.test(output) || !/Tests.*passed/.test(output)) {
      tally.failed++
      process.stderr.write(output)
    }
    process.stderr.write(`${peer.name}: ${tally.chains} chains, ${tally.failed} parts failed\n`)
  }
  const changed =
    tally.changed === 0 ? [] : [['changed bytes', tally.changed, tally.changedAccepted, tally.failed]]
  const rows = [['as generated', tally.chains, tally.accepted, tally.failed], ...changed]
  const head = [`kcert and ${peer.name}`, 'chains', 'accepted by both', 'seeds with a difference']
  publish(`differential-${peer.suite}`, tableOf(head, rows))
  if (tally.failed > 0) process.exitCode = 1
}

function run({ suite, variable }: Peer, seed: number, count: number): string {
  const command = [...prefix, 'vitest', 'run', '--project', 'unit', `test/differential/${suite}.test.ts`]
  const env = { ...process.env, KCERT_SEED: String(seed), [variable]: String(count), NO_COLOR: '1' }
  const { stdout, stderr } = spawnSync(command[0]!, command.slice(1), {
    encoding: 'utf8',
    env,
    maxBuffer: 1 << 28,
  })
  return `${stdout}${stderr}`
}
