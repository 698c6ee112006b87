import { KcertCommand } from '../../cli/base-command.ts'
import { parseDuration } from '../../cli/instant.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { RotationOldKeys } from '../../rotation/report.ts'
import type { PauseBetween } from './pauses.ts'
import type { RotationSession } from './session.ts'
import type { RotationSettingsFlags } from './settings.ts'
import type { RotationOpenOptions, RotationPlaceFlags } from './site.ts'

interface SessionFlags extends RotationPlaceFlags, RotationSettingsFlags {
  readonly yes?: boolean
  readonly 'pause-between'?: PauseBetween | undefined
  readonly 'by-runbook'?: boolean
}

/** The base class of rotate-ca commands: opens a session on the cluster that the flags select. */
export abstract class RotationCommand extends KcertCommand {
  /** Returns the result of `act` with a session. */
  protected async withSession<Result>(
    flags: SessionFlags,
    mode: RotationOpenOptions['mode'],
    act: (session: RotationSession) => Promise<Result>,
  ): Promise<Result> {
    const [
      { RotationSession },
      { givenCas, settingsOf },
      { hookRunner },
      { operatorAt },
      { openRotation },
      { playbookOf },
    ] = await Promise.all([
      import('./session.ts'),
      import('./settings.ts'),
      import('./hooks.ts'),
      import('./operator.ts'),
      import('./site.ts'),
      import('./playbooks.ts'),
    ])
    const { context } = this
    const given = await givenCas(flags, context)
    const settings = settingsOf(flags, given)
    const playbook = playbookOf(flags.ca)
    const { pace, yes = false, 'by-runbook': byRunbook = false, 'pause-between': pauseBetween } = flags
    const paceMs = pace === undefined ? undefined : parseDuration(pace, '--pace')
    using operator = await operatorAt(context)
    await using rotation = await openRotation(context, flags, {
      ...{ mode, table: playbook, given },
      waivers: settings.waivers,
    })
    const { ports, presets, hooks } = rotation
    const rollEveryMs = paceMs ?? rotation.rollEveryMs
    const runHook = hookRunner(context.env, operator.note)
    const options = { playbook, settings, presets, yes, pauseBetween, byRunbook, rollEveryMs, hooks, runHook }
    return await act(await RotationSession.open(ports, options, operator))
  }

  /** Returns the outcome for the old CA's key: archived in a folder, or destroyed if none is given. */
  protected async retireKeys(
    flags: RotationPlaceFlags & {
      readonly yes: boolean
      readonly 'dry-run': boolean
      readonly ca?: string | undefined
    },
    folder: string | undefined,
    render: (report: RotationOldKeys) => string,
  ) {
    const [{ retireOldKeys }, { keyArchive }, { operatorAt }, { openRotation }, { tableOf }] =
      await Promise.all([
        import('./retire-old-keys.ts'),
        import('./key-archive.ts'),
        import('./operator.ts'),
        import('./site.ts'),
        import('./settings.ts'),
      ])
    const { context } = this
    const { yes, 'dry-run': dryRun, ca } = flags
    const table = tableOf(ca)
    const archive = folder === undefined ? {} : { archive: keyArchive(folder, context.workingFolder) }
    const mode = dryRun ? 'read' : 'write'
    using operator = await operatorAt(context)
    await using rotation = await openRotation(context, flags, {
      ...{ mode, table, given: {} },
      takesFinished: true,
    })
    return await retireOldKeys(rotation.ports, { ...archive, table, dryRun, yes, render }, operator)
  }

  /** With expired certificates no client reaches the cluster, so the error names the command that helps. */
  protected override async fail(error: KcertError): Promise<ExitCode> {
    const { code, message, why, cause } = error
    if (code !== 'KCERT_API_CERT_EXPIRED' && code !== 'KCERT_API_CLIENT_EXPIRED') return super.fail(error)
    const advice = {
      fix: commandLine`if the CA itself has expired, use kcert rotate-ca recover --dry-run instead`,
      next: commandLine`kcert renew --all`,
    }
    return super.fail(new KcertError(code, message, { ...(why !== undefined && { why }), ...advice, cause }))
  }
}
