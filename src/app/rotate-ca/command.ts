import { KcertCommand } from '../../cli/base-command.ts'
import { parseDuration } from '../../cli/instant.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { Playbook } from '../../rotation/phase.ts'
import type { RotationOldKeys } from '../../rotation/report.ts'
import type { PauseBetween } from './pauses.ts'
import type { RotationSession } from './session.ts'
import type { RotationSettingsFlags } from './settings.ts'
import type { RotationOpenOptions, RotationPlaceFlags } from './site.ts'

type ReportFormat = 'text' | 'json' | 'yaml'

interface SessionFlags extends RotationPlaceFlags, RotationSettingsFlags {
  readonly yes?: boolean
  readonly 'pause-between'?: PauseBetween | undefined
  readonly 'by-runbook'?: boolean
}

/** The base class of rotate-ca and rotate-sa-key commands: opens a session on the cluster that the flags select. */
export abstract class RotationCommand extends KcertCommand {
  /** Returns the playbook that the flags select. */
  protected async playbookOf({ ca }: Pick<SessionFlags, 'ca'>): Promise<Playbook> {
    return (await import('./playbooks.ts')).playbookOf(ca)
  }

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
      playbook,
    ] = await Promise.all([
      import('./session.ts'),
      import('./settings.ts'),
      import('./hooks.ts'),
      import('./operator.ts'),
      import('./site.ts'),
      this.playbookOf(flags),
    ])
    const { context } = this
    const given = await givenCas(flags, context)
    const settings = settingsOf(flags, given)
    const { pace, yes = false, 'by-runbook': byRunbook = false, 'pause-between': pauseBetween } = flags
    const paceMs = pace === undefined ? undefined : parseDuration(pace, '--pace')
    using operator = await operatorAt(context)
    await using rotation = await openRotation(context, flags, {
      ...{ mode, table: playbook, given },
      waivers: settings.waivers,
    })
    const { ports, presets, hooks } = rotation
    const rollEveryMs = paceMs ?? rotation.rollEveryMs
    const runHook = hookRunner(context.env, operator.note, playbook)
    const options = { playbook, settings, presets, yes, pauseBetween, byRunbook, rollEveryMs, hooks, runHook }
    return await act(await RotationSession.open(ports, options, operator))
  }

  /** Shows the state, shows the plan of these phases with --dry-run, or runs them. */
  protected async runAsked(
    flags: SessionFlags & { readonly 'dry-run': boolean; readonly output: ReportFormat },
    phases: readonly number[] | undefined,
  ): Promise<ExitCode> {
    const { output } = flags
    if (phases === undefined) {
      const { renderProgress } = await import('../../output/rotation/status.ts')
      const status = await this.withSession(flags, 'read', (session) => session.status())
      return this.show(output, status, renderProgress)
    }
    if (flags['dry-run']) {
      const { renderPlan } = await import('../../output/rotation/plan.ts')
      const plan = await this.withSession(flags, 'read', (session) => session.dryRun(phases))
      return this.show(output, plan, renderPlan)
    }
    const { renderRun } = await import('../../output/rotation/run.ts')
    const { report, exit } = await this.withSession(flags, 'write', (session) => session.run(phases))
    return this.show(output, report, renderRun, { exit })
  }

  /** Rolls back phases, or shows the plan of the first one with --dry-run. */
  protected async rollBack(
    flags: SessionFlags & {
      readonly to?: number | undefined
      readonly 'dry-run': boolean
      readonly output: ReportFormat
    },
  ): Promise<ExitCode> {
    const { to, output } = flags
    if (flags['dry-run']) {
      const { renderPlan } = await import('../../output/rotation/plan.ts')
      const plan = await this.withSession(flags, 'read', (session) => session.dryRollback(to))
      return this.show(output, plan, (shown, view) => renderPlan(shown, view, true))
    }
    const { renderRun } = await import('../../output/rotation/run.ts')
    const { report, exit } = await this.withSession(flags, 'write', (session) => session.rollback(to))
    return this.show(output, report, renderRun, { exit })
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
