import { readDrafts, submitDrafts } from '../../app/csr/submit.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import {
  booleanFlag,
  clusterExits,
  clusterFlags,
  numberFlag,
  operands,
  repeatedFlag,
  reportFormatFlag,
  valueFlag,
} from '../../cli/flags.ts'
import type { SubmissionReport } from '../../csr/submission-report.ts'
import { type ExitCode, exitCodes, worstExit } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderSubmissions } from '../../output/csr-submit.ts'

export default class CsrSubmit extends KcertCommand {
  static override summary =
    'Send certificate requests to a cluster, after asking whether they can be accepted and signed.'

  static override description =
    `Takes requests in PEM or DER, which flags make objects of, or CertificateSigningRequests in YAML or JSON. Before anything is sent
the rules of the API server and of the signer are asked, as kcert csr check does, and what would be refused or would fail for good
is not sent; --force sends it all the same.

It can be run again at any time: an object of the same name with the same request, signer and usages is there already. Another one
is a conflict, and what differs is said. A write whose answer was lost is looked up, never made twice.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'all are on the cluster (or, with --dry-run, would be)',
    [exitCodes.usage]: 'wrong usage, a file that cannot be read, or no kubeconfig',
    [exitCodes.no]: 'a request would be refused or fail, was denied or has failed, or its name is taken',
  }

  static override examples = KcertCommand.examplesOf({
    'A user: the usages are those that the signer wants':
      'kcert csr submit ann.csr --signer kubernetes.io/kube-apiserver-client',
    'A server in the cluster, for a signer of your own':
      'kcert csr submit server.csr --name my-svc.my-namespace --signer example.com/serving --usage "digital signature,server auth"',
    'In the place of kubectl apply -f -':
      'kcert csr create --user ann --key-out ann-key.pem -o manifest | kcert csr submit -',
    'Would the API server take all of these?': 'kcert csr submit requests/*.yaml --dry-run',
  })

  static override args = {
    request: operands(
      'requests in PEM or DER, or CertificateSigningRequests in YAML or JSON; "-" for standard input',
    ),
  }

  static override dryRunBy = 'server' as const

  static override flags = {
    signer: valueFlag('NAME', 'spec.signerName'),
    usage: repeatedFlag(
      'USAGE',
      'one of spec.usages, such as "client auth"; with commas for several. If not said: what the signer wants',
    ),
    'expiration-seconds': numberFlag('SECONDS', 'spec.expirationSeconds'),
    name: valueFlag('NAME', 'name of the object; of a file with several: which one'),
    'dry-run': booleanFlag('ask the API server, and leave nothing behind'),
    force: booleanFlag('send also what would be refused or fail'),
    ...clusterFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands } = await this.parse(CsrSubmit)
    if (operands.length === 0)
      throw new KcertError('KCERT_USAGE', 'no request is named', {
        next: 'name a file, or - for standard input: kcert csr submit FILE --signer kubernetes.io/kube-apiserver-client',
      })
    const { context } = this
    const drafts = await readDrafts(operands, flags, context)
    const settings = { dryRun: flags['dry-run'], now: context.clock }
    const { items, errors } = await this.onCluster(flags, ({ requests }) =>
      submitDrafts(requests, drafts, settings),
    )
    const [first] = errors
    if (first !== undefined && items.length === 1 && flags.output === 'text') throw first
    const report: SubmissionReport = { apiVersion: 'kcert/v1', kind: 'SubmittedRequests', submissions: items }
    if (flags.output === 'text') {
      for (const { notices } of items) this.note(notices)
      for (const error of errors) await this.fail(error)
    }
    await this.show(flags.output, report, renderSubmissions)
    if (first !== undefined) return worstExit(errors.map(({ exitCode }) => exitCode))
    const isOver = items.some(({ request }) => request?.state === 'denied' || request?.state === 'failed')
    return isOver ? exitCodes.no : exitCodes.done
  }
}
