import { KcertCommand } from '../../cli/base-command.ts'
import type { Context } from '../../cli/context.ts'
import { parseDuration } from '../../cli/instant.ts'
import { interruptible } from '../../cli/interruption.ts'
import { argumentVector, type CommandLine, commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { RotationOldKeys } from '../../rotation/report.ts'
import type { PauseBetween } from './pauses.ts'
import type { Operator, RotationSession } from './session.ts'
import type { Manner, OpenedRotation, RotationPlaceFlags } from './site.ts'
import type { RotationWishFlags } from './wish.ts'

interface SessionFlags extends RotationPlaceFlags, RotationWishFlags {
  readonly yes?: boolean
  readonly 'pause-between'?: PauseBetween | undefined
  readonly 'by-runbook'?: boolean
}

/** What the commands of rotate-ca share: flags → a session on the cluster that they name. */
export abstract class RotationCommand extends KcertCommand {
  /** Returns what `act` returns, given a session. */
  protected async withSession<Result>(
    flags: SessionFlags,
    manner: Manner['manner'],
    act: (session: RotationSession) => Promise<Result>,
  ): Promise<Result> {
    const [{ RotationSession }, { givenCas, wishOf }, { hookRunner }] = await Promise.all([
      import('./session.ts'),
      import('./wish.ts'),
      import('./hooks.ts'),
    ])
    const { context } = this
    const given = await givenCas(flags, context)
    const wish = wishOf(flags, given)
    const { pace, yes = false } = flags
    const paceMs = pace === undefined ? undefined : parseDuration(pace, '--pace')
    const waivers = wish.waivers ?? new Set()
    return this.onRotation(flags, { manner, given, waivers }, async (rotation, operator) => {
      const { ports, presets, rollEveryMs, hooks } = rotation
      const options = {
        wish,
        presets,
        yes,
        pauseBetween: flags['pause-between'],
        byRunbook: flags['by-runbook'] === true,
        rollEveryMs: paceMs ?? rollEveryMs,
        hooks,
        runHook: hookRunner(context.env, operator.note),
        command: pastable(flags, context),
      }
      return act(await RotationSession.open(ports, options, operator))
    })
  }

  /** Returns what became of the old CA's key: archived in a folder, or destroyed where none is given. */
  protected async retireKeys(
    flags: RotationPlaceFlags & { readonly yes: boolean; readonly 'dry-run': boolean },
    folder: string | undefined,
    render: (report: RotationOldKeys) => string,
  ) {
    const [{ retireOldKeys }, { keyArchive }] = await Promise.all([
      import('./retire-old-keys.ts'),
      import('./key-archive.ts'),
    ])
    const { context } = this
    const { yes, 'dry-run': dryRun } = flags
    const wish = {
      ...(folder === undefined ? {} : { archive: keyArchive(folder, context.workingFolder) }),
      dryRun,
      yes,
      command: pastable(flags, context),
      render,
    }
    const manner = { manner: dryRun ? 'reads' : 'acts', given: {}, takesFinished: true } as const
    return this.onRotation(flags, manner, ({ ports }, operator) => retireOldKeys(ports, wish, operator))
  }

  private async onRotation<Result>(
    flags: RotationPlaceFlags,
    manner: Manner,
    act: (rotation: OpenedRotation, operator: Operator) => Promise<Result>,
  ): Promise<Result> {
    const [{ operatorAt }, { openRotation }] = await Promise.all([
      import('./operator.ts'),
      import('./site.ts'),
    ])
    using interruption = interruptible()
    using operator = await operatorAt(this.context, interruption.signal)
    try {
      await using rotation = await openRotation(this.context, flags, manner)
      return await act(rotation, operator)
    } catch (error) {
      throw withWayOut(error)
    }
  }
}

/** Where certificates have expired nobody gets as far as the cluster: what says so names the way out. */
function withWayOut(error: unknown): unknown {
  const isExpired =
    error instanceof KcertError &&
    (error.code === 'KCERT_API_CERT_EXPIRED' || error.code === 'KCERT_API_CLIENT_EXPIRED')
  if (!isExpired) return error
  return new KcertError(error.code, error.message, {
    ...(error.why !== undefined && { why: error.why }),
    next: 'if the CA itself has expired use kcert rotate-ca recover --dry-run; otherwise: kcert renew --all',
    cause: error,
  })
}

/** The command with the places that were named, so that it can be pasted. */
function pastable(flags: RotationPlaceFlags, { env }: Context): CommandLine {
  const { inventory, journal, kubeconfig, context } = flags
  const words = [
    ...(inventory === 'kcert.yaml' ? [] : ['--inventory', inventory]),
    ...(journal === undefined ? [] : ['--journal', journal]),
    ...(kubeconfig === undefined || kubeconfig === env.KUBECONFIG ? [] : ['--kubeconfig', kubeconfig]),
    ...(context === undefined ? [] : ['--context', context]),
  ]
  return commandLine`kcert rotate-ca ${argumentVector(words)}`
}
