import { KcertCommand } from '../../cli/base-command.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { Playbook } from '../../rotation/phase.ts'
import type { RotationSession } from './session.ts'
import type { RetirementFlags, RotationOpenOptions, SessionFlags } from './site.ts'

type ReportFormat = 'text' | 'json' | 'yaml'

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
    const [{ withSession }, playbook] = await Promise.all([import('./site.ts'), this.playbookOf(flags)])
    return withSession(this.context, flags, mode, playbook, act)
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

  /** Writes the scripts of a phase, or of its rollback, into a new folder. */
  protected async writeRunbook(
    flags: SessionFlags & { readonly phase: number; readonly undo: boolean; readonly output: ReportFormat },
    folder: string,
  ): Promise<ExitCode> {
    const [{ renderRunbook }, { newFolder, writeInto }, { noPaint }, { stdoutView }] = await Promise.all([
      import('../../output/rotation/runbook.ts'),
      import('../../system/new-folder.ts'),
      import('../../output/paint.ts'),
      import('../../cli/view.ts'),
    ])
    const { phase, undo, output } = flags
    newFolder(folder)
    const { report, files } = await this.withSession(flags, 'read', (session) =>
      undo ? session.runbookBack(phase, folder) : session.runbook(phase, folder),
    )
    if (files.length > 0) {
      const view = { ...(await stdoutView(this.context)), paint: noPaint }
      writeInto(folder, [...files, { path: 'README.txt', content: renderRunbook(report, view) }])
    }
    return this.show(output, report, renderRunbook)
  }

  /** Archives or destroys the old keys of a finished rotation, or shows what that would do with --dry-run. */
  protected async retireOldKeys(
    flags: RetirementFlags & { readonly output: ReportFormat },
  ): Promise<ExitCode> {
    const [{ renderOldKeys }, { retireKeys }, { stdoutView }, playbook] = await Promise.all([
      import('../../output/rotation/old-keys.ts'),
      import('./site.ts'),
      import('../../cli/view.ts'),
      this.playbookOf(flags),
    ])
    const view = await stdoutView(this.context)
    const { report, exit } = await retireKeys(this.context, flags, playbook, (plan) =>
      renderOldKeys(plan, view),
    )
    return this.show(flags.output, report, renderOldKeys, { exit })
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
