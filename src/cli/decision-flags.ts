import * as Flags from '@oclif/core/flags'
import type { Act } from '../csr/approval/judging.ts'
import { reportFormatFlag } from './report-format.ts'

const verbs = { approve: 'approved', deny: 'denied' } as const

/** The flags of `kcert csr approve` and `kcert csr deny`. */
export function decisionFlags(act: Act) {
  return {
    file: Flags.string({
      char: 'f',
      description:
        'manifests: their requests are found by name, and must be byte-identical; "-" for standard input',
      helpValue: 'FILE',
      multiple: true,
      multipleNonGreedy: true,
    }),
    selector: Flags.string({
      char: 'l',
      description: 'all that wait and have these labels, as kubectl takes them',
      helpValue: 'LABELS',
    }),
    signer: Flags.string({ description: 'all that wait for this signer', helpValue: 'NAME' }),
    policy: Flags.string({
      description: `what this policy says is ${verbs[act]}, the rest left alone: a file (docs/policy.md), or built-in ones: "builtin" for all, kubelet-client, kubelet-serving. Alone it judges all that wait`,
      helpValue: 'FILE|builtin',
    }),
    reason: Flags.string({
      description: 'of the condition: one word for programs, such as NodeOfBatch7',
      helpValue: 'WORD',
    }),
    message: Flags.string({ description: 'of the condition: for people', helpValue: 'TEXT' }),
    'dry-run': Flags.boolean({ description: 'show every verdict, and write nothing' }),
    yes: Flags.boolean({ char: 'y', description: 'do not ask' }),
    concurrency: Flags.integer({
      description: 'how many requests are worked on at once',
      helpValue: 'N',
      default: 16,
      min: 1,
      max: 256,
    }),
    output: reportFormatFlag(),
  }
}

/** What these flags say. */
export interface DecisionWish {
  readonly names: readonly string[]
  readonly file: readonly string[] | undefined
  readonly selector: string | undefined
  readonly signer: string | undefined
  readonly policy: string | undefined
  readonly reason: string | undefined
  readonly message: string | undefined
  readonly dryRun: boolean
  readonly yes: boolean
  readonly force: boolean
  readonly concurrency: number
}
