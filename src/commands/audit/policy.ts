import { checkAuditPolicy, readAuditPolicy, sufficientPolicy } from '../../audit/policy.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { readText } from '../../cli/input.ts'
import { exitCodes } from '../../errors/codes.ts'
import { sourceName } from '../../errors/source-name.ts'
import { renderPolicyCheck } from '../../output/audit.ts'

export default class AuditPolicy extends KcertCommand {
  static override summary = 'Print the audit policy that kcert audit needs, or check what a policy hides.'

  static override description =
    `kcert audit needs one event for each request, at level Metadata: it has the user, the credential ID, the source address and the user agent, and no content of objects. Issued certificates are the exception: with level Request for them, kcert knows their subjects without other files.

With --check, kcert reads the policy in a file and names each rule that hides uses of credentials. The first rule that matches a request decides, so a rule after a broader one has no effect.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the policy was printed, or hides no use',
    usage: 'wrong usage, or the file is not an audit policy that kube-apiserver accepts',
    no: 'the policy hides uses of credentials, or which tokens are new',
  })

  static override examples = KcertCommand.examplesOf({
    'Write the policy': 'kcert audit policy > /etc/kubernetes/audit-policy.yaml',
    'Check the policy of a control-plane node':
      'kcert audit policy --check /etc/kubernetes/audit-policy.yaml',
    'Print as JSON what a policy hides': 'kcert audit policy --check audit-policy.yaml -o json',
  })

  static override flags = {
    check: Flag.value(
      'FILE',
      'audit policy to check, or "-" for standard input (default none: print a policy)',
    ),
    output: Flag.reportFormat('format of the check; the policy is always YAML'),
  }

  protected override async perform() {
    const { flags } = await this.parse(AuditPolicy)
    if (flags.check === undefined) return this.answer(sufficientPolicy)
    const source = sourceName(flags.check)
    const policy = await readAuditPolicy(await readText(flags.check, this.context), source)
    const check = checkAuditPolicy(policy, source)
    const exit = check.isSufficient ? exitCodes.done : exitCodes.no
    return this.show(flags.output, check, renderPolicyCheck, { exit })
  }
}
