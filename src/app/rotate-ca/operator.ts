import type { Context } from '../../cli/context.ts'
import { interruptible } from '../../cli/interruption.ts'
import { answered, canAsk, choose, terminalAsker } from '../../cli/prompts.ts'
import { stderrView } from '../../cli/view.ts'
import { renderPhasePlan } from '../../output/rotation/plan.ts'
import { rotationProgress } from '../../output/rotation/progress.ts'
import { printable } from '../../output/terminal.ts'
import type { Operator } from './session.ts'

/**
 * Returns the operator at this terminal. Until disposal, progress and prompts go to standard error, and Ctrl-C stops between two
 * acts.
 */
export async function operatorAt(context: Context): Promise<Operator & Disposable> {
  const { stderr } = context
  const isTerminal = stderr.isTTY === true
  const { paint, width } = await stderrView(context)
  const progress = rotationProgress({
    write: (text) => {
      stderr.write(text)
    },
    isTerminal,
    width,
    paint,
    nowMs: () => context.clock().getTime(),
  })
  const write = (text: string): void => {
    progress.clear()
    stderr.write(text)
  }
  let isAsking = false
  const ticking = isTerminal
    ? setInterval(() => {
        if (!isAsking) progress.tick()
      }, 1_000)
    : undefined
  ticking?.unref()
  const asks = canAsk(context)
  const asking = async (ask: () => Promise<boolean>): Promise<boolean> => {
    isAsking = true
    progress.clear()
    try {
      return await answered(ask)
    } finally {
      isAsking = false
    }
  }
  const stopping = (): void =>
    write('stopping: finishing the current action; press Ctrl-C again to quit immediately\n')
  const interruption = interruptible()
  const { signal: interrupted } = interruption
  interrupted.addEventListener('abort', stopping)
  return {
    choose: asks ? (message) => asking(() => choose(context, message)) : undefined,
    type: asks ? (message, word) => asking(() => typed(context, message, word)) : undefined,
    showPlan: (plan, isUndo) => write(renderPhasePlan(plan, { paint, width }, isUndo)),
    tell: progress.tell,
    note: (text) => write(`${text.split('\n').map(printable).join('\n')}\n`),
    interrupted,
    [Symbol.dispose]() {
      clearInterval(ticking)
      interruption[Symbol.dispose]()
      progress.clear()
    },
  }
}

async function typed(context: Context, message: string, word: string): Promise<boolean> {
  return (await (await terminalAsker(context)).text({ flag: 'yes', message: printable(message) })) === word
}
