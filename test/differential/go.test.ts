import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { Certificate } from '../../src/x509/certificate.ts'
import { CertificatePool } from '../../src/x509/certificate-pool.ts'
import { type ChainQuestion, verifyChain } from '../../src/x509/chain.ts'
import { goError } from '../../src/x509/go-words.ts'
import { buildGoPeer, type GoVerdict, GoVerifier } from '../peers/go-peer.ts'
import { type GeneratedQuestion, questionAbout } from './pki-arbitrary.ts'

const chains = Number(process.env.KCERT_CHAINS ?? 3000)
const seed = Number(process.env.KCERT_SEED ?? Math.floor(Math.random() * 2 ** 31))
const timeout = Math.max(60_000, chains * 20)

const peer = buildGoPeer()
if ('missing' in peer) console.log(peer.missing)

describe.skipIf('missing' in peer)('kcert and Go on random PKIs', () => {
  const go = new GoVerifier('path' in peer ? peer.path : '')
  afterAll(() => go.close())

  test(
    'accept and refuse the same chains, find the same paths and give the same reason',
    async () => {
      const outcomes = new Map<string, number>()
      await fc.assert(
        fc.asyncProperty(questionAbout(new Date('2026-11-21T09:00:00Z')), async (question) => {
          const kcert = judge(question)
          const { outcome, ...answer } = kcert
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
          expect(answer).toEqual(comparable(await go.ask(question)))
        }),
        { numRuns: chains, seed, verbose: false },
      )
      const counts = [...outcomes]
        .toSorted((a, b) => b[1] - a[1])
        .map(([outcome, count]) => `${outcome} ${count}`)
      console.log(`${chains} chains, seed ${seed}: ${counts.join(', ')}`)
      const trusted = outcomes.get('trusted') ?? 0
      // Otherwise the generator has stopped to make anything worth comparing.
      expect(trusted).toBeGreaterThan(chains * 0.15)
      expect(trusted).toBeLessThan(chains * 0.85)
    },
    timeout,
  )
})

type Comparable = Pick<GoVerdict, 'ok' | 'error' | 'chains'>

function comparable({ ok, kind, error, chains }: GoVerdict): Comparable {
  // kcert words what is wrong with a certificate's encoding in its own way.
  if (kind === 'parse') return { ok, error: 'parse' }
  return ok ? { ok, chains: chains! } : { ok, error: error! }
}

function judge(question: GeneratedQuestion): Comparable & { outcome: string } {
  const leaf = parsed(question.leaf)
  if (leaf === undefined) return { ok: false, error: 'parse', outcome: 'unreadable' }
  const asked: ChainQuestion = {
    ...question,
    leaf,
    roots: new CertificatePool(question.roots.map(parsed).filter((certificate) => certificate !== undefined)),
    intermediates: new CertificatePool(
      question.intermediates.map(parsed).filter((certificate) => certificate !== undefined),
    ),
  }
  const verdict = verifyChain(asked)
  if (!verdict.trusted) {
    return { ok: false, error: goError(verdict.refusal, asked), outcome: verdict.refusal.code }
  }
  const chains = verdict.chains.map((chain) => chain.map(({ fingerprintSha256 }) => fingerprintSha256))
  return { ok: true, chains, outcome: 'trusted' }
}

function parsed(der: Uint8Array): Certificate | undefined {
  try {
    return Certificate.parse(der)
  } catch {
    return undefined
  }
}
