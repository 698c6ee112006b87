import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Certificate } from '../../src/x509/certificate.ts'
import { CertificatePool } from '../../src/x509/certificate-pool.ts'
import { type ChainQuestion, verifyChain } from '../../src/x509/chain.ts'
import { goError } from '../../src/x509/go-words.ts'
import { buildGoPeer, type GoVerdict, GoVerifier } from '../peers/go-peer.ts'
import { type GeneratedQuestion, questionAbout } from './pki-arbitrary.ts'
import { seed } from './seed.ts'

const chains = Number(process.env.KCERT_CHAINS ?? 5000)
const timeout = Math.max(1_200_000, chains * 80)

const peer = buildGoPeer()
if ('missing' in peer) console.log(peer.missing)

describe.skipIf('missing' in peer)('kcert and Go on random PKIs', () => {
  let go: GoVerifier
  beforeAll(() => {
    if ('path' in peer) go = new GoVerifier(peer.path)
  })
  afterAll(() => go.close())

  test(
    'accept and reject the same chains, find the same paths and give the same reason',
    async () => {
      const outcomes = new Map<string, number>()
      await fc.assert(
        fc.asyncProperty(questionAbout(new Date('2026-11-21T09:00:00Z')), async (question) => {
          const kcert = evaluate(question)
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
      // Otherwise the generator no longer creates useful cases.
      expect(trusted).toBeGreaterThan(chains * 0.15)
      expect(trusted).toBeLessThan(chains * 0.85)
    },
    timeout,
  )

  test(
    'accept and reject the same when bytes of the certificates are changed, which mostly breaks encodings',
    async () => {
      let trusted = 0
      const changed = fc.tuple(
        questionAbout(new Date('2026-11-21T09:00:00Z')),
        fc.array(change, { minLength: 1, maxLength: 3 }),
      )
      await fc.assert(
        fc.asyncProperty(changed, async ([question, changes]) => {
          const broken = changes.reduce(withChange, question)
          const { ok, chains } = evaluate(broken)
          const answer = await go.ask(broken)
          if (ok) trusted++
          expect({ ok, chains }).toEqual({ ok: answer.ok, chains: answer.chains })
        }),
        { numRuns: Math.ceil(chains / 3), seed },
      )
      console.log(`${Math.ceil(chains / 3)} chains with changed bytes, seed ${seed}: ${trusted} trusted`)
      expect(trusted).toBeGreaterThan(0)
    },
    timeout,
  )
})

interface Change {
  readonly of: 'leaf' | 'roots' | 'intermediates'
  readonly which: number
  /** Relative position, 0 to 1 of the length. */
  readonly at: number
  readonly kind: 'flip' | 'set' | 'cut' | 'insert'
  readonly byte: number
}

const change: fc.Arbitrary<Change> = fc.record({
  of: fc.constantFrom('leaf', 'roots', 'intermediates'),
  which: fc.nat(5),
  at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  kind: fc.constantFrom('flip', 'flip', 'set', 'cut', 'insert'),
  byte: fc.nat(255),
})

function withChange(question: GeneratedQuestion, change: Change): GeneratedQuestion {
  if (change.of === 'leaf') return { ...question, leaf: changedDer(question.leaf, change) }
  const list = question[change.of]
  if (list.length === 0) return question
  const index = change.which % list.length
  return { ...question, [change.of]: list.with(index, changedDer(list[index]!, change)) }
}

function changedDer(der: Uint8Array, { at, kind, byte }: Change): Uint8Array {
  const index = Math.floor(at * der.length)
  switch (kind) {
    case 'flip':
      return Uint8Array.from(der, (old, i) => (i === index ? old ^ (1 << (byte % 8)) : old))
    case 'set':
      return Uint8Array.from(der, (old, i) => (i === index ? byte : old))
    case 'cut':
      return der.slice(0, index)
    case 'insert':
      return Buffer.concat([der.subarray(0, index), Uint8Array.of(byte), der.subarray(index)])
  }
}

type Comparable = Pick<GoVerdict, 'ok' | 'error' | 'chains'>

function comparable({ ok, kind, error, chains }: GoVerdict): Comparable {
  // kcert describes encoding errors with its own texts.
  if (kind === 'parse') return { ok, error: 'parse' }
  return ok ? { ok, chains: chains! } : { ok, error: error! }
}

function evaluate(question: GeneratedQuestion): Comparable & { outcome: string } {
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
