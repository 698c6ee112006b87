import type { Context } from '../../cli/context.ts'
import { descriptorOf } from '../../cli/input.ts'
import type { Policy } from '../../csr/approval/policy.ts'
import { readPolicies } from '../../csr/approval/policy-file.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { type NamedPolicies, namedPolicies, readPolicyText } from '../csr/policies.ts'

/** Policies, and when they were read. A decision belongs to one such object. */
export interface LoadedPolicies {
  readonly policies: readonly Policy[]
  readonly loadedAt: Date
}

/** The policies of --approve, which are read again when the file changes. */
export class PolicySource {
  readonly #name: string
  readonly #context: Context
  #current: LoadedPolicies
  #text: string | undefined
  #candidate: string | undefined
  #failure: KcertError | undefined

  private constructor(name: string, context: Context, { policies, text }: NamedPolicies) {
    this.#name = name
    this.#context = context
    this.#current = { policies, loadedAt: context.clock() }
    this.#text = text
  }

  /** Throws KCERT_USAGE for a pipe, and as `namedPolicies`: at the start there is no earlier policy to keep. */
  static async open(name: string, context: Context): Promise<PolicySource> {
    if (descriptorOf(name) !== undefined)
      throw new KcertError('KCERT_USAGE', `--approve ${name} is not a file`, {
        why: 'the controller reads the policy again when it changes, and a pipe can be read only once',
        next: '--approve policy.yaml',
      })
    return new PolicySource(name, context, await namedPolicies(name, context))
  }

  get current(): LoadedPolicies {
    return this.#current
  }

  /** Why the file cannot be used now; the earlier policies stay in use. */
  get failure(): KcertError | undefined {
    return this.#failure
  }

  /**
   * Reads the file again. Returns what changed: the policies, or whether the file can be used. A new content is used once two reads
   * in a row return it: the first part of a file that is being written may be a valid policy without its last rules.
   */
  async poll(): Promise<'replaced' | 'failed' | 'usable' | undefined> {
    if (this.#text === undefined) return undefined
    const before = this.#failure
    try {
      const last = this.#candidate
      // A read that fails is between this one and the last.
      this.#candidate = undefined
      const text = await readPolicyText(this.#name, this.#context)
      const isStable = text === last
      this.#candidate = text
      if (text !== this.#text) {
        if (!isStable) return undefined
        const policies = await readPolicies(text, this.#name)
        this.#current = { policies, loadedAt: this.#context.clock() }
        this.#text = text
        this.#failure = undefined
        return 'replaced'
      }
      this.#failure = undefined
      return before === undefined ? undefined : 'usable'
    } catch (error) {
      if (!(error instanceof KcertError)) throw error
      this.#failure = error
      return before?.message === error.message && before.why === error.why ? undefined : 'failed'
    }
  }
}
