import { requestFlags } from '../../app/csr/request-flags.ts'
import { checkTogether } from '../../app/csr/request-settings.ts'
import { signalOf } from '../../app/kubelet/after-renewal.ts'
import { manageCertificate } from '../../app/kubelet/manage.ts'
import { manageSettingsOf } from '../../app/kubelet/manage-settings.ts'
import { metricsFile, metricsServer } from '../../app/kubelet/metrics-output.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles, flagFiles } from '../../cli/command-files.ts'
import {
  booleanFlag,
  clusterExits,
  clusterFlagsBesideUser,
  reportFormatFlag,
  valueFlag,
} from '../../cli/flags.ts'
import { interruptible } from '../../cli/interruption.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderManaged } from '../../output/kubelet-manage.ts'

const { cn, org, ou, dns, ip, email, uri, user, service, signer, usage } = requestFlags

export default class KubeletManage extends KcertCommand {
  static override summary =
    'Keep a client or serving certificate: get it, and renew it before it ends, for ever.'

  static override description =
    `Runs until it is told to end (SIGTERM, Ctrl-C), as the certificate manager in every kubelet does, for any certificate that the cluster signs.
It asks for a new one, with a new key, when none is there, when it has expired, when it lacks a name that is asked for, and at a random
point of 70 to 90 % of its life. A try that fails is made again after 2, 4, 8 and 16 s, then every 32 s; a request is waited for 15 min.

Certificate and key lie in one file of mode 0600, FOLDER/NAME-2026-11-21-22-00-00.pem, and FOLDER/NAME-current.pem leads to the one that counts,
as in the kubelet's own folder: a kubelet reads what this command wrote, and the other way round. The link changes in one step; whoever
reads it at any moment finds a whole pair. Old pairs stay.

A serving certificate of a kubelet without --dns and --ip gets the names of its Node, and is renewed when these change; so is one by
--template, when the file changes. SIGUSR2 renews now. What the kubelet itself renews (rotateCertificates, serverTLSBootstrap) needs no
second owner: see kcert kubelet forecast.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'it was told to end; with --once: there is a certificate that need not be renewed yet',
    [exitCodes.usage]: 'wrong usage, or a file that cannot be read',
    [exitCodes.no]:
      'the signer would refuse it; with --once: it was denied, has failed, or may not be asked for',
    [exitCodes.unreachable]:
      'another kcert keeps this pair; with --once: the API server could not be reached, or nobody signed in time',
    [exitCodes.refused]: 'a file stands where the link to the current pair belongs',
  }

  static override examples = KcertCommand.examplesOf({
    "What a kubelet serves, where it does not ask itself: tlsCertFile and tlsPrivateKeyFile name the pair's link":
      'kcert kubelet manage --kubelet-serving node-1 --pair-name kcert-server --kubeconfig /etc/kubernetes/kubelet.conf',
    'A server of your own, which reads its certificate again on SIGHUP; metrics for Prometheus':
      'kcert kubelet manage --service web.shop --signer example.com/serving --cert-dir /etc/web/tls --pair-name web --signal HUP --pid-file /run/web.pid --metrics-address 127.0.0.1:9464',
    'A user, from a bootstrap token on: its kubeconfig names the link, and never changes again':
      'kcert kubelet manage --user ci --cert-dir /var/lib/ci --pair-name ci --bootstrap-kubeconfig bootstrap.conf --kubeconfig /var/lib/ci/kubeconfig',
    'From a timer instead of as a service: renew it if it is time, and end':
      "kcert kubelet manage --template web.yaml --signer example.com/serving --usage 'digital signature,server auth' --cert-dir /etc/web/tls --pair-name web --once --exec 'systemctl reload web'",
    'What would be asked for, and when': 'kcert kubelet manage --kubelet-client node-1 --dry-run -o json',
  })

  static override flags = {
    user,
    'kubelet-client': requestFlags['kubelet-client'],
    'kubelet-serving': requestFlags['kubelet-serving'],
    service,
    template: valueFlag(
      'FILE',
      'subject and names from this file, of kind CertificateTemplate, read again when it changes',
    ),
    cn,
    org,
    ou,
    dns,
    ip,
    email,
    uri,
    'key-type': requestFlags['key-type'],
    'cluster-domain': requestFlags['cluster-domain'],
    signer,
    usage,
    'expiration-seconds': requestFlags['expiration-seconds'],
    'cert-dir': valueFlag('FOLDER', "folder of the pairs; a kubelet's: /var/lib/kubelet/pki", {
      helpGroup: 'PAIR',
    }),
    'pair-name': valueFlag(
      'NAME',
      "what the pair's files begin with; a kubelet's: kubelet-client, kubelet-server",
      { helpGroup: 'PAIR' },
    ),
    'bootstrap-kubeconfig': valueFlag(
      'FILE',
      'ask by this until there is a certificate; --kubeconfig is written then, where it is not there',
      { helpGroup: 'CLUSTER', dependsOn: ['kubeconfig'] },
    ),
    exec: valueFlag('COMMAND', 'run this in a shell after each renewal; KCERT_PAIR names the link', {
      helpGroup: 'AFTER A RENEWAL',
    }),
    signal: valueFlag('SIGNAL', 'send this signal to the process of --pid-file after each renewal', {
      helpGroup: 'AFTER A RENEWAL',
      dependsOn: ['pid-file'],
    }),
    'pid-file': valueFlag('FILE', 'file that holds the process id', {
      helpGroup: 'AFTER A RENEWAL',
      dependsOn: ['signal'],
    }),
    'metrics-address': valueFlag(
      'ADDRESS',
      'answer http://ADDRESS/metrics for Prometheus; a loopback address, such as 127.0.0.1:9464',
      { exclusive: ['metrics-file'] },
    ),
    'metrics-file': valueFlag(
      'FILE',
      "write the metrics into this file, for node_exporter's textfile collector",
    ),
    once: booleanFlag('end when there is a certificate that need not be renewed yet, or a try failed'),
    'force-renewal': booleanFlag('renew at the start, whatever the certificate says'),
    'dry-run': booleanFlag('show what would be asked for and when; ask for nothing, write nothing'),
    ...clusterFlagsBesideUser,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(KubeletManage)
    checkTogether(flags)
    const { context } = this
    if (flags.signal !== undefined) signalOf(flags.signal)
    const { 'metrics-file': file, 'metrics-address': address, 'bootstrap-kubeconfig': bootstrap } = flags
    checkFiles({
      inputs: flagFiles(flags, 'template', 'bootstrap-kubeconfig'),
      outputs: [
        { by: '--metrics-file', path: file, holds: 'public' },
        ...(bootstrap === undefined
          ? []
          : [{ by: '--kubeconfig', path: flags.kubeconfig, holds: 'key' } as const]),
      ],
      replace: true,
    })
    const settings = await manageSettingsOf(flags, context)
    if (bootstrap !== undefined && !settings.spec.usages.includes('client auth'))
      throw new KcertError('KCERT_USAGE', '--bootstrap-kubeconfig is for client certificates', {
        why: 'a serving certificate lets nobody ask for the next one',
        next: 'name a kubeconfig that may ask: --kubeconfig FILE',
      })
    this.note(settings.notices)
    const note = (text: string): void =>
      this.notice(`${context.clock().toISOString().slice(0, 19)}Z ${text}\n`)
    using interruption = interruptible()
    const report = await manageCertificate(
      settings,
      {
        cluster: { ...flags, user: undefined },
        bootstrapKubeconfig: bootstrap,
        dryRun: flags['dry-run'] ?? false,
        once: flags.once ?? false,
        forceRenewal: flags['force-renewal'] ?? false,
        exec: flags.exec,
        signal: flags.signal,
        pidFile: flags['pid-file'],
        metrics: async (text) => {
          if (file !== undefined) return metricsFile(file, text, note)
          return address === undefined ? undefined : metricsServer(address, text)
        },
        ended: interruption.signal,
        note,
      },
      context,
    )
    await this.show(flags.output, report, renderManaged)
    return exitCodes.done
  }
}
