import { readDrafts, submitDrafts } from '../../app/csr/submit.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { newRequestObject } from '../../csr/request-object.ts'
import type { SubmissionReport } from '../../csr/submission-report.ts'
import { exitCodes, worstExit } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderSubmissions } from '../../output/csr-submit.ts'
import { renderYamlDocuments } from '../../output/yaml.ts'

export default class CsrSubmit extends KcertCommand {
  static override summary = 'Check CSRs and submit them to a cluster.'

  static override description =
    `Takes CSRs in PEM or DER, or CertificateSigningRequests in YAML or JSON. For PEM and DER, flags give the fields of the object. Before it
sends anything, kcert applies the rules of the API server and of the signer, like kcert csr check. It does not send what would be refused or
would fail. With --force, kcert sends it anyway.

You can run the command again at any time. If an object of the same name has the same request, signer and usages, kcert reports that it exists
already. If it differs, kcert reports a conflict and the differences. If the answer to a write is lost, kcert looks the object up and never
creates it twice.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'all are on the cluster (with --dry-run: all would be accepted)',
    usage: 'wrong usage, a file that cannot be read, or no kubeconfig',
    no: 'a CSR would be refused or fail, is denied or failed, or its name is taken',
  })

  static override examples = KcertCommand.examplesOf({
    'Submit a CSR for a user, with the usages that the signer accepts':
      'kcert csr submit ann.csr --signer kubernetes.io/kube-apiserver-client',
    'Submit a CSR for a server in the cluster, with your own signer':
      'kcert csr submit server.csr --name my-svc.my-namespace --signer example.com/serving --usage "digital signature,server auth"',
    'Replace kubectl apply -f - in a pipeline':
      'kcert csr create --user ann --key-out ann-key.pem -o manifest | kcert csr submit -',
    'Check whether the API server would accept all of these': 'kcert csr submit requests/*.yaml --dry-run',
  })

  static override args = {
    request: Flag.operands(
      'CSRs in PEM or DER, or CertificateSigningRequests in YAML or JSON; "-" for standard input',
    ),
  }

  static override dryRunBy = 'server' as const

  static override flags = {
    signer: Flag.value('NAME', 'spec.signerName'),
    usage: Flag.repeated(
      'USAGE',
      'spec.usages, such as "client auth"; separate several with commas (default what the signer accepts)',
    ),
    'expiration-seconds': Flag.number(
      'SECONDS',
      'spec.expirationSeconds, at least 600 (default none: the signer decides)',
    ),
    name: Flag.value('NAME', 'name of the object; for a file with several: the one to submit'),
    'dry-run': Flag.boolean(
      'validate on the API server without creating anything; with -o yaml, print the objects',
    ),
    force: Flag.boolean('send even what would be refused or fail'),
    ...Flag.clusterFlags,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags, operands } = await this.parse(CsrSubmit)
    if (operands.length === 0)
      throw new KcertError('KCERT_USAGE', 'no CSR file given', {
        next: 'kcert csr submit --help',
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
    if (flags['dry-run'] && flags.output === 'yaml') {
      for (const error of errors) await this.fail(error)
      const accepted = drafts.filter((_, index) => items[index]?.outcome === 'dry-run')
      await this.answer(renderYamlDocuments(accepted.map(({ request }) => newRequestObject(request))))
    } else await this.show(flags.output, report, renderSubmissions)
    if (first !== undefined) return worstExit(errors.map(({ exitCode }) => exitCode))
    const isOver = items.some(({ request }) => request?.state === 'denied' || request?.state === 'failed')
    return isOver ? exitCodes.no : exitCodes.done
  }
}
