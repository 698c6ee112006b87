import fc from 'fast-check'
import { KcertError } from '../../src/errors/kcert-error.ts'
import type { Coverage } from './coverage.ts'
import { Dice, mutated } from './mutator.ts'
import type { Reader } from './readers.ts'

/** An input that a reader did not handle: it threw an error other than a KcertError, or took a second of CPU time. */
export interface Finding {
  readonly reader: string
  readonly what: string
  readonly input: Uint8Array
}

/** The results for a reader. */
export interface Fuzzed {
  readonly reader: string
  executions: number
  /** Inputs that the reader accepted. */
  accepted: number
  /** Inputs that ran new code, including the seeds. */
  corpus: number
  readonly findings: Finding[]
}

/** How inputs are created: guided by coverage, mutated without coverage, or by fast-check. */
export type Way = 'guided' | 'blind' | 'fast-check'

const batchSize = 256
const slowMs = 1000

/** Fuzzes one reader. The same seed gives the same inputs, unless time ends the run. */
export class Fuzzer {
  readonly done: Fuzzed
  readonly #reader: Reader
  readonly #dice: Dice
  readonly #seed: number
  readonly #corpus: Uint8Array[]
  readonly #words: readonly Uint8Array[]
  readonly #places = new Set<string>()
  readonly #coverage: Coverage | undefined

  constructor(reader: Reader, seed: number, coverage?: Coverage) {
    this.#reader = reader
    this.#seed = seed
    this.#dice = new Dice(seed)
    this.#corpus = [...reader.corpus]
    this.#words = reader.words.map((word) => (typeof word === 'string' ? Buffer.from(word, 'latin1') : word))
    this.#coverage = coverage
    this.done = { reader: reader.name, executions: 0, accepted: 0, corpus: 0, findings: [] }
  }

  /** Continues in one way until the number of executions is reached, or `isOver` returns true after a batch. */
  async run(way: Way, executions: number, isOver: () => boolean = () => false): Promise<void> {
    const coverage = way === 'guided' ? this.#coverage : undefined
    const drawn = way === 'fast-check' ? this.#drawn() : undefined
    if (coverage !== undefined) {
      coverage.resume()
      for (const seed of this.#corpus) await this.#execute(seed)
      coverage.isNew(true)
    }
    const end = this.done.executions + executions
    while (this.done.executions < end && !isOver()) {
      const size = Math.min(batchSize, end - this.done.executions)
      const batch = Array.from({ length: size }, () => (drawn ? drawn() : this.#next()))
      const before = process.threadCpuUsage()
      for (const input of batch) await this.#execute(input)
      const { user, system } = process.threadCpuUsage(before)
      if ((user + system) / 1000 > slowMs) await this.#findSlow(batch)
      if (coverage?.isNew(false)) await this.#keepNew(batch, coverage)
      // A microtask does not let a signal handler run.
      await new Promise((done) => setImmediate(done))
    }
    coverage?.pause()
    this.done.corpus = this.#corpus.length
  }

  #next(): Uint8Array {
    const [input, other] = [this.#dice.of(this.#corpus), this.#dice.of(this.#corpus)]
    return mutated(input, other, this.#words, this.#dice, this.#reader.longest)
  }

  /** Returns a function that draws the next input with fast-check: concatenated pieces of the corpus, words and bytes. */
  #drawn(): () => Uint8Array {
    const { corpus } = this.#reader
    const piece = fc
      .record({
        from: fc.constantFrom(...corpus),
        at: fc.double({ min: 0, max: 1, noNaN: true }),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      })
      .map(({ from, at, share }) => from.subarray(at * from.length, (at + (1 - at) * share) * from.length))
    const part = fc.oneof(
      { weight: 4, arbitrary: piece },
      { weight: 2, arbitrary: fc.constantFrom(...this.#words) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 16 }) },
    )
    const whole = fc.array(part, { minLength: 1, maxLength: 8 }).map((parts) => Buffer.concat(parts))
    let held: Buffer[] = []
    let turn = 0
    return () => {
      if (held.length === 0) held = fc.sample(whole, { numRuns: batchSize, seed: this.#seed + turn++ })
      return held.pop()!.subarray(0, this.#reader.longest)
    }
  }

  async #execute(input: Uint8Array): Promise<void> {
    this.done.executions++
    try {
      const reading = this.#reader.read(input)
      if (reading !== undefined) await reading
      this.done.accepted++
    } catch (error) {
      if (!(error instanceof KcertError) || error.code === 'KCERT_DEFECT') this.#find(error as Error, input)
    }
  }

  #find(error: Error, input: Uint8Array): void {
    const frame = /\((?:file:\/\/)?[^)]*?(src\/[^)]+)\)|at (?:file:\/\/)?\S*?(src\/\S+)/.exec(
      error.stack ?? '',
    )
    const place = `${error.name}: ${error.message.slice(0, 120)} at ${frame?.[1] ?? frame?.[2] ?? '?'}`
    if (this.#places.has(place)) return
    this.#places.add(place)
    this.done.findings.push({ reader: this.#reader.name, what: place, input: Buffer.from(input) })
  }

  async #findSlow(batch: readonly Uint8Array[]): Promise<void> {
    for (const input of batch) {
      const before = process.threadCpuUsage()
      await this.#execute(input)
      const { user, system } = process.threadCpuUsage(before)
      if ((user + system) / 1000 <= slowMs) continue
      const what = `took ${Math.round((user + system) / 1000)} ms of the processor`
      this.done.findings.push({ reader: this.#reader.name, what, input: Buffer.from(input) })
    }
  }

  /** Splits a batch in halves until it finds the inputs that ran new code. */
  async #keepNew(batch: readonly Uint8Array[], coverage: Coverage): Promise<void> {
    const middle = batch.length >> 1
    const halves = batch.length === 1 ? [batch] : [batch.slice(0, middle), batch.slice(middle)]
    for (const half of halves) {
      for (const input of half) await this.#execute(input)
      if (!coverage.isNew(half.length === 1)) continue
      if (half.length === 1) this.#corpus.push(half[0]!)
      else await this.#keepNew(half, coverage)
    }
  }
}
