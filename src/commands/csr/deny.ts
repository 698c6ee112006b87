import { DecisionCommand, decisionFlags } from '../../app/csr/decision-command.ts'
import { clusterExits, clusterFlags, operands } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'

export default class CsrDeny extends DecisionCommand {
  static override summary = 'Deny requests on a cluster: by name, or all that a policy denies.'

  static override description =
    `A denial is final: the requester sees the message, makes a new request, and the object is removed after an hour. What is
approved already cannot be denied; its certificate is good until it expires.

With --policy only what a rule denies is denied (decision: deny, or onViolation: deny of the built-in ones); the rest is left alone.
Each request is read again right before, and only the object that was judged is denied. On a terminal the command asks first;
without one, a selection needs --yes.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'all are denied, or were before',
    [exitCodes.usage]: 'wrong usage, or a file that cannot be read',
    [exitCodes.no]: 'some were not denied: they are approved, have failed or are gone, or you said no',
    [exitCodes.unreachable]: 'the cluster did not answer, for some or for all; running it again does no harm',
    [exitCodes.refused]: 'some are no longer the request that was judged',
  }

  static override examples = DecisionCommand.examplesOf({
    'One request, with a word to its owner':
      'kcert csr deny csr-7x2lq --message "ask with CN=ann, without system:masters"',
    'What the rules of a policy deny; first to look at': 'kcert csr deny --policy policy.yaml --dry-run',
    'All that wait for a signer that is no more': 'kcert csr deny --signer old.example.com/serving --yes',
  })

  static override args = { name: operands('name of a request, or of many') }

  static override flags = { ...clusterFlags, ...decisionFlags('deny') }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands } = await this.parse(CsrDeny)
    return this.decide('deny', operands, flags)
  }
}
