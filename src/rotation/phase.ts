import type { Step } from './action.ts'
import type { CopyPicture, SectionName, Seen } from './picture.ts'
import type { Target } from './target.ts'

/** What running a phase can cost: nothing, files and objects, processes, or the way back. Decides how it is confirmed. */
export const risks = ['reads', 'writes', 'restarts', 'no-return'] as const
export type Risk = (typeof risks)[number]

/** One thing that separates the picture from the phase being done. */
export interface Gap {
  /** A node, file, object, pod or process. */
  readonly at: string
  /** What is not so yet, as a fragment: "holds the old CA alone". */
  readonly what: string
}

/** Why a phase, or a rotation, is not begun. */
export interface Refusal {
  readonly what: string
  readonly why: string
  readonly next: string
}

export type Undo =
  | { readonly kind: 'steps'; readonly steps: readonly Step[] }
  | { readonly kind: 'impossible'; readonly refusal: Refusal }

/** What the copies on the nodes say about the time before a phase. */
export interface Before {
  readonly phase: number
  readonly copies: readonly CopyPicture[]
}

/**
 * A step of the playbook as a value. It reads nothing, writes nothing and prints nothing: it turns what was seen into gaps and
 * actions. Same input, same output.
 */
export interface Phase<Section extends SectionName = SectionName> {
  readonly id: string
  readonly number: number
  readonly title: string
  /** The step of the page that it serves. */
  readonly source: string
  /** Numbers of the phases that must hold before. */
  readonly after: readonly number[]
  readonly risk: Risk
  /** What the observer must fetch, and nothing else. */
  readonly sees: readonly Section[]
  /** What separates the cluster from "at least this far"; empty when the phase holds. No later phase opens a gap again. */
  gaps(seen: Seen<Section>, target: Target): readonly Gap[]
  /** The steps that close the gaps, in order. */
  plan(seen: Seen<Section>, target: Target): readonly Step[]
  /** The steps that bring `now` back to what it was before the phase, or why there are none. */
  undo(before: Before, now: Seen<Section>, target: Target): Undo
  /** Why it must not be begun yet; nothing is planned while this is not empty. */
  refusals?(seen: Seen<Section>, target: Target): readonly Refusal[]
  /** What the operator should know though nothing is to be done: "no API server has --kubelet-certificate-authority". */
  remarks?(seen: Seen<Section>, target: Target): readonly string[]
}

/** Returns the phase with its sections inferred, as one that can be given a whole picture. */
export function definePhase<const Section extends SectionName>(phase: Phase<Section>): Phase {
  return phase
}
