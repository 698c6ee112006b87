import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { readDrafts, submitDrafts } from '../../app/csr/submit.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { clusterExits, clusterFlags } from '../../cli/cluster-flags.ts'
import { reportFormatFlag } from '../../cli/report-format.ts'
import { repeatedFlag, valueFlag } from '../../cli/value-flag.ts'
import { withCluster } from '../../cli/with-cluster.ts'
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
    [exitCodes.done]: 'all are on the cluster (or, with --dry-run, would be)',
    [exitCodes.usage]: 'wrong usage, a file that cannot be read, or no kubeconfig',
    [exitCodes.no]: 'a request would be refused or fail, was denied or has failed, or its name is taken',
    [exitCodes.unreachable]: 'the API server could not be reached',
    ...clusterExits,
  }

  static override examples = KcertCommand.examplesOf({
    'A user: the usages are those that the signer wants':
      '<%= config.bin %> csr submit ann.csr --signer kubernetes.io/kube-apiserver-client',
    'A server in the cluster, for a signer of your own':
      '<%= config.bin %> csr submit server.csr --name my-svc.my-namespace --signer example.com/serving --usage "digital signature,server auth"',
    'In the place of kubectl apply -f -':
      '<%= config.bin %> csr create --user ann --key-out ann-key.pem -o manifest | <%= config.bin %> csr submit -',
    'Would the API server take all of these?': '<%= config.bin %> csr submit requests/*.yaml --dry-run',
  })

  static override args = {
    request: Args.string({
      description:
        'requests in PEM or DER, or CertificateSigningRequests in YAML or JSON; "-" for standard input',
      multiple: true,
      ignoreStdin: true,
    }),
  }

  static override dryRunBy = 'server' as const

  static override flags = {
    signer: valueFlag('NAME', 'spec.signerName'),
    usage: repeatedFlag(
      'USAGE',
      'one of spec.usages, such as "client auth"; with commas for several. If not said: what the signer wants',
    ),
    'expiration-seconds': Flags.integer({ description: 'spec.expirationSeconds', helpValue: 'SECONDS' }),
    name: valueFlag('NAME', 'name of the object; of a file with several: which one'),
    'dry-run': Flags.boolean({ description: 'ask the API server, and leave nothing behind' }),
    force: Flags.boolean({ description: 'send also what would be refused or fail' }),
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
    const wish = { dryRun: flags['dry-run'], now: context.clock }
    const { items, errors } = await withCluster(context, flags, ({ requests }) =>
      submitDrafts(requests, drafts, wish),
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
