import { argumentVector, type CommandLine, commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { RotationOldKeys } from '../rotation/report.ts'
import { KcertCommand } from './base-command.ts'
import type { ClusterFlags } from './cluster-flags.ts'
import type { Context } from './context.ts'
import { parseDuration } from './instant.ts'
import { whileInterruptible } from './interruption.ts'
import type { PauseBetween } from './rotation-pauses.ts'
import type { RotationSession } from './rotation-session.ts'
import type { RotationWishFlags } from './rotation-wish.ts'

export interface RotationPlaceFlags extends ClusterFlags {
  readonly inventory: string
  readonly journal?: string | undefined
}

interface SessionFlags extends RotationPlaceFlags, RotationWishFlags {
  readonly yes?: boolean
  readonly 'pause-between'?: PauseBetween | undefined
  readonly 'by-runbook'?: boolean
}

/** What the commands of rotate-ca share: flags → a session on the cluster that they name. */
export abstract class RotationCommand extends KcertCommand {
  /**
   * Returns what `act` returns, given a session. `acts`: the journal's lock and the Lease in the cluster are held meanwhile;
   * `reads`: nothing is written anywhere.
   */
  protected async withSession<Result>(
    flags: SessionFlags,
    manner: 'acts' | 'reads',
    act: (session: RotationSession) => Promise<Result>,
  ): Promise<Result> {
    const [{ withRotation }, { RotationSession }, { withOperator }, { givenCas, wishOf }, { hookRunner }] =
      await Promise.all([
        import('./rotation-site.ts'),
        import('./rotation-session.ts'),
        import('./rotation-operator.ts'),
        import('./rotation-wish.ts'),
        import('./rotation-hooks.ts'),
      ])
    const { context } = this
    const given = await givenCas(flags, context)
    const wish = wishOf(flags, given)
    const { pace, yes = false } = flags
    const paceMs = pace === undefined ? undefined : parseDuration(pace, '--pace')
    return refusingExpired(
      whileInterruptible((interrupted) =>
        withOperator(context, interrupted, (operator) =>
          withRotation(
            context,
            flags,
            { manner, given, waivers: wish.waivers ?? new Set() },
            async ({ ports, presets, rollEveryMs, hooks }) => {
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
            },
          ),
        ),
      ),
    )
  }

  /** Returns what became of the old CA's key: archived in a folder, or destroyed where none is given. */
  protected async retireKeys(
    flags: RotationPlaceFlags & { readonly yes: boolean; readonly 'dry-run': boolean },
    folder: string | undefined,
    render: (report: RotationOldKeys) => string,
  ) {
    const [{ withRotation }, { retireOldKeys }, { withOperator }, { keyArchive }] = await Promise.all([
      import('./rotation-site.ts'),
      import('./retire-old-keys.ts'),
      import('./rotation-operator.ts'),
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
    return refusingExpired(
      whileInterruptible((interrupted) =>
        withOperator(context, interrupted, (operator) =>
          withRotation(context, flags, manner, ({ ports }) => retireOldKeys(ports, wish, operator)),
        ),
      ),
    )
  }
}

/** Where certificates have ended nobody gets as far as the cluster: what says so names the way out. */
async function refusingExpired<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    const isExpired =
      error instanceof KcertError &&
      (error.code === 'KCERT_API_CERT_EXPIRED' || error.code === 'KCERT_API_CLIENT_EXPIRED')
    if (!isExpired) throw error
    throw new KcertError(error.code, error.message, {
      ...(error.why !== undefined && { why: error.why }),
      next: 'if the CA itself has expired use kcert rotate-ca recover --dry-run; otherwise: kcert renew --all',
      cause: error,
    })
  }
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
