import { RotationCommand } from '../app/rotate-ca/command.ts'
import { rotationConsentFlags, rotationPlaceFlags, rotationSettingsFlags } from '../app/rotate-ca/flags.ts'
import { booleanFlag, clusterExits, numberFlag, reportFormatFlag, valueFlag } from '../cli/flags.ts'
import { stdoutView } from '../cli/view.ts'
import { type ExitCode, exitCodes } from '../errors/codes.ts'
import { phaseTable } from '../rotation/phase-table.ts'

// soak and trust-reloading-clients have a value also where nobody names them.
const phaseFlags = [
  ...['phase', 'through', 'all', 'by-runbook', 'pause-between'],
  ...Object.keys(rotationSettingsFlags).filter(
    (name) => name !== 'soak' && name !== 'trust-reloading-clients',
  ),
]

export default class RotateCa extends RotationCommand {
  static override summary =
    "Rotate a cluster's CAs by the twelve steps of Kubernetes' own page, without one failed request."

  static override description =
    `Without a phase it says where the rotation stands and which command comes next; nothing is written. That is read from the cluster
each time, so running a phase again is how it goes on after Ctrl-C, a crash, or a node that was away: what holds is not done again.

--phase 3 is item 3 of "Manual Rotation of CA Certificates". A phase is observed, planned, checked on a model for connections that
would break, shown, agreed to, and done action by action; it ends when the cluster is seen to be as the phase wants it. A phase is
refused while one that must come before it does not hold. All phases up to 11 have a way back: kcert rotate-ca rollback. Phase 12,
which drops the old CA, has none.

What is chosen in phase 1 (--ca, --no-bridge, --reason, --new-keys) is in the journal and holds for the commands after it. The journal
has digests, paths and public keys of CAs, never private ones. One rotation at a time: a lock on this machine, a Lease in the cluster.

After the end the key of the old CA still lies among the copies on control-plane nodes, for root alone. It stays until --archive-old-key
or --destroy-old-key; a key that is encrypted is named, and left as it is. Files are overwritten where they lie and then removed; on SSDs
and copy-on-write disks bytes may remain all the same, and backups of nodes, snapshots of disks and etcd, and folders of rotate-ca runbook
are yours to look after.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'the phases hold, or it was said where the rotation stands',
    [exitCodes.usage]: 'wrong usage, or no inventory',
    [exitCodes.no]:
      'a phase does not hold yet, was declined, or was stopped by Ctrl-C, or an encrypted key may be the old one; what is missing is named',
    [exitCodes.unreachable]:
      'the cluster or a node did not answer, or another kcert is at work; run it again',
    [exitCodes.refused]:
      'refused for safety: out of order, drift, an edge of the model, or nobody there to say yes',
  }

  static override examples = RotationCommand.examplesOf({
    'Where it stands, and what comes next': 'kcert rotate-ca',
    'What phase 2 would do, and nothing else': 'kcert rotate-ca --phase 2 --dry-run',
    'One phase after its plan was agreed to': 'kcert rotate-ca --phase 2',
    'Everything that has a way back, from a script': 'kcert rotate-ca --through 11 --yes',
    'Phases 5 to 9, and a question before each node':
      'kcert rotate-ca --phase 5-9 --max-unavailable 1 --pause-between nodes',
    'The cluster CA alone, with a CA of your own':
      'kcert rotate-ca --phase 1 --ca cluster --ca-cert new-ca.crt --ca-key new-ca.key',
    "After the end: which nodes still have the old CA's key": 'kcert rotate-ca --destroy-old-key --dry-run',
    'Away from the nodes with it, into a folder of this machine':
      'kcert rotate-ca --archive-old-key /media/vault/old-ca',
  })

  static override flags = {
    phase: valueFlag('N|N-M', 'the phase to run, or the phases, such as 3 or 2-6', {
      exclusive: ['through', 'all'],
    }),
    through: numberFlag('N', 'all phases up to this one', {
      min: 1,
      max: phaseTable.length,
      exclusive: ['phase', 'all'],
    }),
    all: booleanFlag('all twelve phases', { exclusive: ['phase', 'through'] }),
    'archive-old-key': valueFlag(
      'DIR',
      "after phase 12: write the old CA's key into this folder of this machine (0600, beside its certificate), read it back, and remove it from the nodes",
      { exclusive: [...phaseFlags, 'destroy-old-key'] },
    ),
    'destroy-old-key': booleanFlag("after phase 12: overwrite and remove the old CA's key on every node", {
      exclusive: [...phaseFlags, 'archive-old-key'],
    }),
    ...rotationConsentFlags,
    'by-runbook': booleanFlag(
      'do nothing on nodes: say which scripts of `rotate-ca runbook` come next, and do the rest',
    ),
    ...rotationPlaceFlags,
    ...rotationSettingsFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(RotateCa)
    const { phasesOf } = await import('../app/rotate-ca/settings.ts')
    const { 'archive-old-key': folder, 'destroy-old-key': destroys } = flags
    if (folder !== undefined || destroys) return this.retireOldKeys(flags, folder)
    const phases = phasesOf(flags)
    if (phases === undefined) return this.progress(flags)
    return flags['dry-run'] ? this.dryRun(flags, phases) : this.runPhases(flags, phases)
  }

  private async retireOldKeys(
    flags: Parsed & { readonly yes: boolean; readonly 'dry-run': boolean },
    folder: string | undefined,
  ): Promise<ExitCode> {
    const { renderOldKeys } = await import('../output/rotation/old-keys.ts')
    const view = await stdoutView(this.context)
    const { report, exit } = await this.retireKeys(flags, folder, (plan) => renderOldKeys(plan, view))
    await this.show(flags.output, report, renderOldKeys)
    return exit
  }

  private async progress(flags: Parsed): Promise<ExitCode> {
    const { renderProgress } = await import('../output/rotation/status.ts')
    const status = await this.withSession(flags, 'reads', (session) => session.status())
    await this.show(flags.output, status, renderProgress)
    return exitCodes.done
  }

  private async dryRun(flags: Parsed, phases: readonly number[]): Promise<ExitCode> {
    const { renderPlan } = await import('../output/rotation/plan.ts')
    const plan = await this.withSession(flags, 'reads', (session) => session.dryRun(phases))
    await this.show(flags.output, plan, renderPlan)
    return exitCodes.done
  }

  private async runPhases(flags: Parsed, phases: readonly number[]): Promise<ExitCode> {
    const { renderRun } = await import('../output/rotation/run.ts')
    const { report, exit } = await this.withSession(flags, 'acts', (session) => session.run(phases))
    await this.show(flags.output, report, renderRun)
    return exit
  }
}

type Parsed = Parameters<RotateCa['withSession']>[0] & { readonly output: 'text' | 'json' | 'yaml' }
