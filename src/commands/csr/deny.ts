import { DecisionCommand, decisionFlags } from '../../app/csr/decision-command.ts'
import * as Flag from '../../cli/flags.ts'

export default class CsrDeny extends DecisionCommand {
  static override summary = 'Deny certificate signing requests, by name or by a policy.'

  static override description =
    `A denial is final. The requester sees the message and must create a new request. kube-controller-manager deletes a denied request after
an hour. You cannot deny an approved request: its certificate is valid until it expires.

With --policy, kcert denies what matches a rule with "decision: deny", or breaks a built-in rule that has "onViolation: deny". It skips
the rest.

kcert reads each request again right before it denies it, and denies only the object that it checked. On a terminal, kcert asks first.
Without a terminal, a selection (--selector, --signer) needs --yes.`

  static override exitCodes = DecisionCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'all requests are denied',
    usage: 'wrong usage, or a file that cannot be read',
    no: 'some were not denied: they are approved, failed or deleted, or you answered no',
    unreachable: 'the API server could not be reached for some or all; it is safe to run the command again',
    refused: 'some changed after kcert checked them',
  })

  static override examples = DecisionCommand.examplesOf({
    'Deny one request, with a message to the requester':
      'kcert csr deny csr-7x2lq --message "request CN=ann, without system:masters"',
    'Preview which pending CSRs a policy would deny': 'kcert csr deny --policy policy.yaml --dry-run',
    'Deny all pending CSRs of a signer that no longer exists':
      'kcert csr deny --signer old.example.com/serving --yes',
  })

  static override args = { name: Flag.operands('names of requests') }

  static override flags = { ...Flag.clusterFlags, ...decisionFlags('deny') }

  protected override async perform() {
    const { flags, operands } = await this.parse(CsrDeny)
    return this.decide('deny', operands, flags)
  }
}
