import type { ExitCode } from '../errors/codes.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { KcertCommand } from './base-command.ts'
import * as Flag from './flags.ts'
import { parseDuration } from './instant.ts'
import { isReaderGone } from './standard-output.ts'

/** Returns the output of --watch for a text and the time of the call. */
export type Frame = (text: string, now?: Date) => string

/** The flags of a command that can run repeatedly; `does` is its verb. */
export function watchFlags(does: string) {
  return {
    watch: Flag.boolean(`${does} repeatedly until Ctrl-C`, { char: 'w' }),
    every: Flag.value('DURATION', 'interval of --watch (default 10s)', { dependsOn: ['watch'] }),
  }
}

interface Watching {
  /** True for a temporary error; default that an API server is unreachable, which may be restarting. */
  readonly passes?: (error: KcertError) => boolean
  readonly isOver?: (exit: ExitCode) => boolean
}

export abstract class WatchingCommand extends KcertCommand {
  /**
   * Calls `act`; with --watch repeatedly until Ctrl-C, or until `isOver` accepts an exit code. An error that `passes` accepts is
   * printed, and the next call follows.
   */
  protected async watch(
    { watch, every = '10s' }: { readonly watch: boolean; readonly every?: string | undefined },
    act: (frame: Frame) => Promise<ExitCode>,
    { passes = ({ code }) => code === 'KCERT_UNREACHABLE', isOver = () => false }: Watching = {},
  ): Promise<ExitCode> {
    if (!watch) return act((text) => text)
    const { repeatUntilInterrupted, watchFrame } = await import('./repeat.ts')
    const { context } = this
    const frame: Frame = (text, now = context.clock()) => watchFrame(context, text, now, every)
    const once = async (): Promise<ExitCode> => {
      try {
        return await act(frame)
      } catch (error) {
        if (!(error instanceof KcertError) || !passes(error)) throw error
        if (context.stdoutIsTerminal) await this.answer(frame(''))
        return this.fail(error)
      }
    }
    const exit = await repeatUntilInterrupted(
      parseDuration(every, '--every'),
      once,
      (last) => isReaderGone() || isOver(last),
    )
    // The terminal has echoed ^C, so the next output starts on a new line.
    if (context.stdoutIsTerminal && !isOver(exit)) await this.answer('\n')
    return exit
  }
}
