import { DecisionCommand, decisionFlags } from '../../app/csr/decision-command.ts'
import { booleanFlag, clusterExits, clusterFlags, operands } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'

export default class CsrApprove extends DecisionCommand {
  static override summary = 'Approve requests on a cluster: by name, or all that a policy approves.'

  static override description =
    `Every request is held against the rules first, and both duties of an approver are shown by name: identity (the requester holds
the key and is who the request says) and entitlement (it may have what it asks for).

By name, manifest or selection the decision is yours: what cannot be seen to be right is said and approved, what would hand out
more than it looks like is refused without --force: system:masters, another node's identity, names of the API server, wildcards.
With --policy the policy decides, and whatever it does not approve is left alone.

Right before it is approved, each request is read again: it must be the same object with the same octets, and the API server takes
the approval for that version alone. On a terminal the command asks first; without one, a selection needs --yes.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'all are approved, or were before',
    [exitCodes.usage]: 'wrong usage, or a file that cannot be read',
    [exitCodes.no]:
      'some were not approved: the policy is against it, they are denied or gone, or you said no',
    [exitCodes.unreachable]: 'the cluster did not answer, for some or for all; running it again does no harm',
    [exitCodes.refused]: 'some are refused: dangerous, or no longer the request that was judged',
  }

  static override examples = DecisionCommand.examplesOf({
    'One request': 'kcert csr approve csr-7x2lq',
    "All that wait, as the built-in policies for kubelets' certificates decide; first to look at":
      'kcert csr approve --policy builtin --dry-run',
    'From a timer, by a policy of your own': 'kcert csr approve --policy /etc/kcert/policy.yaml -o json',
    'What was reviewed as a file, and nothing else under that name':
      'kcert csr approve -f reviewed.yaml --reason Ticket4711 --message "reviewed by ann"',
    'A batch by its label': 'kcert csr approve -l batch=7 --signer example.com/serving --yes',
  })

  static override args = { name: operands('name of a request, or of many') }

  static override flags = {
    ...clusterFlags,
    ...decisionFlags('approve'),
    force: booleanFlag('approve by hand what the rules call dangerous'),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands } = await this.parse(CsrApprove)
    return this.decide('approve', operands, flags)
  }
}
