import { keyTypeFlag, presetFlags, requestFlags, subjectFlags } from '../../app/csr/request-flags.ts'
import { checkTogether } from '../../app/csr/request-settings.ts'
import { checkPidFile, signalOf } from '../../app/kubelet/after-renewal.ts'
import { manageCertificate } from '../../app/kubelet/manage.ts'
import { manageSettingsOf } from '../../app/kubelet/manage-settings.ts'
import { metricsFile, metricsServer } from '../../app/kubelet/metrics-output.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles, flagFiles } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { interruptible } from '../../cli/interruption.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderManaged } from '../../output/kubelet-manage.ts'

const { signer, usage } = requestFlags

export default class KubeletManage extends KcertCommand {
  static override summary = 'Obtain a client or serving certificate, and renew it before it expires.'

  static override description =
    `Runs until SIGTERM or Ctrl-C, and works like the certificate manager in every kubelet, for any certificate that the cluster signs. It
requests a certificate with a new key in these cases: there is none, it has expired, a requested name is missing, or a random point
between 70 and 90 % of its validity has passed. After a failure it tries again after 2, 4, 8 and 16 s, then every 32 s. It waits 15 min
for a request to be signed.

Certificate and key are in one file with mode 0600, DIR/NAME-2026-11-21-22-00-00.pem. The link DIR/NAME-current.pem points to the
current one. This is the kubelet's own layout, so a kubelet and kcert can read each other's files. The link changes
atomically: a reader always finds a complete pair. Old pairs are kept.

Without --dns and --ip, a kubelet's serving certificate has the addresses of its Node, and is renewed when they change. With --template,
it is renewed when the file changes. SIGUSR2 renews at once. Do not use this for certificates that the kubelet itself renews
(rotateCertificates, serverTLSBootstrap): kcert kubelet forecast shows which.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'stopped by a signal; with --once: the certificate is not due for renewal',
    usage: 'wrong usage, or an unreadable file',
    no: 'the signer would reject the request; with --once: it was denied, has failed, or you may not create it',
    unreachable:
      'another kcert manages this pair; with --once: the API server was unreachable, or the request was not signed in time',
    refused: 'a file exists where the link to the current pair belongs',
  })

  static override examples = KcertCommand.examplesOf({
    "Manage a kubelet's serving certificate where serverTLSBootstrap is off (point tlsCertFile and tlsPrivateKeyFile at the link)":
      'kcert kubelet manage --kubelet-serving node-1 --pair-name kcert-server --kubeconfig /etc/kubernetes/kubelet.conf',
    'Manage the certificate of a server that reloads on SIGHUP, with metrics for Prometheus':
      'kcert kubelet manage --service web.shop --signer example.com/serving --cert-dir /etc/web/tls --pair-name web --signal HUP --pid-file /run/web.pid --metrics-address 127.0.0.1:9464',
    "Manage a user's certificate, starting from a bootstrap token; the kubeconfig references the link and never changes":
      'kcert kubelet manage --user ci --cert-dir /var/lib/ci --pair-name ci --bootstrap-kubeconfig bootstrap.conf --kubeconfig /var/lib/ci/kubeconfig',
    'Renew if it is due, and exit, from cron or a systemd timer':
      "kcert kubelet manage --template web.yaml --signer example.com/serving --usage 'digital signature,server auth' --cert-dir /etc/web/tls --pair-name web --once --exec 'systemctl reload web'",
    'Preview the request, and when it is due':
      'kcert kubelet manage --kubelet-client node-1 --dry-run -o json',
  })

  static override flags = {
    ...presetFlags,
    template: Flag.value(
      'FILE',
      'read subject and SANs from this CertificateTemplate file, again whenever it changes',
    ),
    ...subjectFlags,
    'key-type': keyTypeFlag(''),
    'cluster-domain': requestFlags['cluster-domain'],
    signer,
    usage,
    'expiration-seconds': requestFlags['expiration-seconds'],
    ...Flag.inGroup('PAIR', {
      'cert-dir': Flag.value('DIR', 'folder of the pairs (default for a kubelet /var/lib/kubelet/pki)'),
      'pair-name': Flag.value(
        'NAME',
        "prefix of the pair's file names (default for a kubelet: kubelet-client, kubelet-server)",
      ),
    }),
    'bootstrap-kubeconfig': Flag.value(
      'FILE',
      'kubeconfig for the first request; --kubeconfig is then created if it does not exist',
      { helpGroup: 'CLUSTER', dependsOn: ['kubeconfig'] },
    ),
    ...Flag.inGroup('AFTER A RENEWAL', {
      exec: Flag.value(
        'COMMAND',
        'shell command to run after each renewal; KCERT_PAIR is the path of the link',
      ),
      signal: Flag.value(
        'SIGNAL',
        'signal to send to the process of --pid-file after each renewal, such as HUP',
        { dependsOn: ['pid-file'] },
      ),
      'pid-file': Flag.value(
        'FILE',
        'file with the process ID, which other users must not be able to change; in a shared emptyDir volume, use --exec instead',
        { dependsOn: ['signal'] },
      ),
    }),
    'metrics-address': Flag.value(
      'ADDRESS',
      'serve http://ADDRESS/metrics for Prometheus; a loopback address, such as 127.0.0.1:9464',
      { exclusive: ['metrics-file'] },
    ),
    'metrics-file': Flag.value('FILE', "file to write metrics to, for node_exporter's textfile collector"),
    once: Flag.boolean('exit when the certificate is not due for renewal, or after a failure'),
    'force-renewal': Flag.boolean('renew at the start even if it is not due'),
    'dry-run': Flag.boolean('show the request and when it is due; create and write nothing'),
    ...Flag.clusterFlagsBesideUser,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags } = await this.parse(KubeletManage)
    checkTogether(flags)
    const { context } = this
    if (flags.signal !== undefined) signalOf(flags.signal)
    if (flags['pid-file'] !== undefined) checkPidFile(flags['pid-file'])
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
        why: 'a serving certificate cannot authenticate the next request: give a --kubeconfig that can',
        next: 'kcert kubelet manage --help',
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
    return this.show(flags.output, report, renderManaged)
  }
}
