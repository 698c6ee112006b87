import { agreed } from '../../cli/consent.ts'
import type { Context } from '../../cli/context.ts'
import { tellLine } from '../../cli/tell-line.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { RotationRecovery } from '../../rotation/report.ts'
import { inventoryIn, withNodes } from './node-inventory.ts'

/** Runs `kcert rotate-ca recover`, or shows its plan. Throws node errors, and an error without a terminal to confirm on. */
export async function recoverCluster(
  context: Context,
  flags: { readonly inventory: string; readonly yes: boolean; readonly 'dry-run': boolean },
): Promise<{ readonly report: RotationRecovery; readonly exit: ExitCode }> {
  const { clock, random, stderr } = context
  const inventory = await inventoryIn(flags.inventory, context)
  const [{ carryOutRecovery, planRecovery }, { recoveryReport }] = await Promise.all([
    import('../../rotation-io/recovering.ts'),
    import('../../rotation/recovery-report.ts'),
  ])
  return withNodes(
    inventory,
    context,
    async (site) => {
      const plan = await planRecovery(site, random)
      const answer = (outcome: RotationRecovery['outcome'], exit: ExitCode) => ({
        report: recoveryReport(plan, outcome, clock()),
        exit,
      })
      if (plan.keyless.length > 0)
        throw new KcertError(
          'KCERT_ROTATION_REFUSED',
          `no control-plane node has the key of the expired CA ${plan.keyless.map(({ subject }) => subject.text).join(', ')}`,
          {
            why: 'the CA certificate can only be renewed with its key: copy it beside the CA certificate on the first control-plane node (mode 0600), for example to /etc/kubernetes/pki/ca.key',
            next: 'kcert rotate-ca recover --dry-run',
          },
        )
      if (plan.renewed.length === 0 && plan.restarts.length === 0)
        return answer('nothing-expired', exitCodes.done)
      if (flags['dry-run']) return answer('planned', exitCodes.done)
      const count = plan.files.length
      const isAgreed = await agreed(context, {
        yes: flags.yes,
        proposal: [],
        question: `Write ${count} files and restart static pods and kubelets?`,
        code: 'KCERT_ROTATION_UNCONFIRMED',
        what: `recovery requires confirmation: it writes ${count} files and restarts components on every node`,
      })
      if (!isAgreed) return answer('declined', exitCodes.no)
      await carryOutRecovery(site, plan, random, (what) => tellLine(stderr, what))
      return answer('recovered', exitCodes.done)
    },
    flags.inventory,
  )
}
