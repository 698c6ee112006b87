import { RotationSession, type SessionOptions } from '../../src/app/rotate-ca/session.ts'
import { noPaint } from '../../src/output/paint.ts'
import { renderPhasePlan } from '../../src/output/rotation/plan.ts'
import { rotationProgress } from '../../src/output/rotation/progress.ts'
import type { Runbook } from '../../src/rotation/runbook.ts'
import type { Settings } from '../../src/rotation/target-reading.ts'
import { SimulatedExecutor, SimulatedOldKeys } from '../fakes/simulated-cluster-ports.ts'
import type { Scene } from './scene.ts'

export const wide = { width: Number.POSITIVE_INFINITY, paint: noPaint }

interface OperatorOptions {
  readonly settings?: Partial<Settings>
  readonly yes?: boolean
  /** The answers to questions; absent without a terminal. */
  readonly answers?: (question: string) => boolean
  readonly options?: Partial<SessionOptions>
  readonly isTerminal?: boolean
  readonly interrupted?: AbortSignal
}

/** An operator of the scene's cluster. Each command is a separate process, and its standard error is kept. */
export class SimulatedOperator {
  readonly scene: Scene
  stderr = ''
  readonly questions: string[] = []
  /** The requested scripts. */
  readonly runbooks: Runbook[] = []

  constructor(scene: Scene) {
    this.scene = scene
  }

  /** Runs one command with a session while time passes. */
  async command<Result>(
    work: (session: RotationSession) => Promise<Result>,
    given: OperatorOptions = {},
  ): Promise<Result> {
    const { cluster, clients, observer, journal } = this.scene
    const { settings = {}, yes = false, answers, options = {}, isTerminal = false } = given
    const progress = rotationProgress({
      write: (text) => {
        this.stderr += text
      },
      isTerminal,
      width: 100,
      paint: noPaint,
      nowMs: cluster.time.now,
    })
    const answer = async (question: string): Promise<boolean> => {
      this.questions.push(question)
      return answers!(question)
    }
    const ports = {
      observer,
      oldKeys: new SimulatedOldKeys(cluster),
      executor: new SimulatedExecutor(cluster, clients),
      journal,
      pace: { now: cluster.time.now, sleep: cluster.time.sleep },
      prepareRunbook: async (runbook: Runbook) => {
        this.runbooks.push(runbook)
        return []
      },
    }
    const session = RotationSession.open(
      ports,
      {
        playbook: this.scene.playbook,
        settings,
        yes,
        pauseBetween: undefined,
        rollEveryMs: 0,
        ...options,
      },
      {
        choose: answers && answer,
        type: answers && answer,
        showPlan: (plan, isUndo) => {
          this.stderr += renderPhasePlan(plan, wide, isUndo)
        },
        tell: progress.tell,
        note: (text) => {
          this.stderr += `${text}\n`
        },
        interrupted: given.interrupted ?? new AbortController().signal,
      },
    )
    return cluster.time.until(session.then(work))
  }
}
