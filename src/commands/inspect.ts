import {
  type InspectFormat,
  type InspectJob,
  inspectFormats,
  inspectTargets,
  renderInspected,
} from '../app/inspect/inspect.ts'
import { checkFiles } from '../cli/command-files.ts'
import * as Flag from '../cli/flags.ts'
import { readPassword } from '../cli/input.ts'
import { parseDuration, parseInstant } from '../cli/instant.ts'
import { tellLine } from '../cli/tell-line.ts'
import { type Frame, WatchingCommand, watchFlags } from '../cli/watching-command.ts'
import type { ExitCode } from '../errors/codes.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { parseSelectors, selectors, sortings } from '../inspection/selection.ts'
import { thresholdsOf } from '../inspection/thresholds.ts'
import { formatError } from '../output/error.ts'
import { nagiosUnknown } from '../output/inspection/nagios.ts'
import { createPaint } from '../output/paint.ts'
import type { View } from '../output/view.ts'
import { writeFileAtomically } from '../system/atomic-file.ts'

const passingCodes: ReadonlySet<string> = new Set([
  'KCERT_FILE_NOT_FOUND',
  'KCERT_FILE_UNREADABLE',
  'KCERT_USAGE',
])

interface Showing {
  readonly format: InspectFormat
  readonly outputFile: string | undefined
}

export default class Inspect extends WatchingCommand {
  static override summary = 'List certificates, when they expire, and what is wrong with them.'

  static override description =
    `Reads kubeconfigs, PEM, DER, PKCS#7, PKCS#12, certificate signing requests, keys, service account tokens, and Secrets, ConfigMaps and CSRs as YAML or JSON. Reads folders recursively. In /etc/kubernetes and /var/lib/kubelet/pki each certificate has the name that kubeadm gives it.

Without a target, kcert reads those of $KUBECONFIG, ~/.kube/config, /etc/kubernetes and /var/lib/kubelet/pki that exist.

Without --cluster, kcert contacts no API server and runs no kubeconfig plugin. It connects only to servers given as HOST:PORT.

With --cluster, kcert also reads the kubeconfig in use, the chains that the API servers serve, and these objects: Secrets, ConfigMaps, webhooks, APIServices, CRDs, CertificateSigningRequests, PodCertificateRequests and ClusterTrustBundles. It shows kube-root-ca.crt once if it is the same in all namespaces. If you may not list a kind, the report has the problem SOURCE_UNREADABLE, and the rest is read. kcert keeps only the public key of a private key, to compare it with the certificate.

For a service account token, kcert shows the key ID (kid), issuer, subject and expiry, never the token. The key that signed it has the same key ID in the table of keys.

The severity of a problem is info, warning or critical. By default, a certificate with less than 30 days or 20 % of its lifetime left, whichever is less, is a warning. With less than 7 days or 5 % it is critical.

The formats of -o:

text        first what to do now, then tables, then one block for each cause of problems
short       NAME, DAYS and PATH of each certificate. DAYS is negative once it has expired.
wide        every field, and the contexts of kubeconfigs, without line breaks
tree        issuers and the certificates that they issued
name        the path of each file, or the name of each object, that contains certificates
json, yaml  the whole report, as in docs/schemas
jsonpath    jsonpath='{TEMPLATE}': as in kubectl, over the fields of json
prometheus  for the textfile collector of node_exporter
nagios      one line, with the exit codes of a monitoring plugin
pem         the certificates themselves
html        one HTML file with what to do now and a timeline. It needs no network and no script.`

  static override exitCodes = WatchingCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'no problem worse than info',
    usage: 'wrong usage, or no target exists or can be read',
    no: 'a problem is a warning or critical, including a target that cannot be read when there are several (-o nagios: exit codes of a monitoring plugin)',
    unreachable: 'a server was not reached, or the output file could not be written',
  })

  static override examples = WatchingCommand.examplesOf({
    'Inspect this machine': 'kcert inspect',
    'Inspect a kubeconfig, with its contexts': 'kcert inspect ~/.kube/config -o wide',
    'Show what expired or expires soon on a control-plane node':
      'sudo kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only expired,expiring',
    'Inspect the chain that an API server serves': 'kcert inspect 192.0.2.10:6443',
    'Show what expired or expires soon in a cluster': 'kcert inspect --cluster --only expired,expiring',
    'Inspect the TLS Secrets of one namespace': 'kubectl get secrets -n shop -o json | kcert inspect -',
    'Show what will have expired in 90 days': 'kcert inspect /etc/kubernetes --at +90d --only expired',
    'Print the files with expired certificates': 'kcert inspect /etc/kubernetes --only expired -o name',
    'Write metrics for node_exporter, which never reads a partial file':
      'kcert inspect /etc/kubernetes -o prometheus --output-file /var/lib/node_exporter/textfile/kcert.prom',
    'Run as a Nagios plugin': 'kcert inspect /etc/kubernetes -o nagios --warn 30d --crit 7d',
    'Write an HTML report': 'kcert inspect --cluster -o html --output-file certificates.html',
  })

  static override args = {
    target: Flag.operands(
      'file, folder, "-" for standard input, or HOST:PORT ([::1]:6443 for IPv6, or https://HOST). If a file has that name, kcert reads the file.',
    ),
  }

  static override flags = {
    output: Flag.format(inspectFormats, 'output format'),
    'no-headers': Flag.noHeaders,
    'output-file': Flag.value(
      'FILE',
      'write the output to this file atomically (mode 0644; an existing file keeps its mode)',
    ),
    only: Flag.repeated(
      'WHICH',
      `show only these certificates and their problems; comma-separated: ${selectors.join(', ')}`,
    ),
    sort: Flag.word(sortings, 'order of the certificates', { default: 'expiry' }),
    warn: Flag.value(
      '30d,20%',
      'warn when less than this is left: a duration, a share of the lifetime, or both, whichever is less (default 30d,20%)',
    ),
    crit: Flag.value('7d,5%', 'critical when less than this is left, in the form of --warn (default 7d,5%)'),
    at: Flag.value('TIME', 'evaluate at this time: 2027-01-01, 2027-01-01T12:00:00Z or +90d (default now)'),
    'password-file': Flag.value(
      'FILE',
      'file whose first line is the password of PKCS#12 keystores and encrypted keys',
    ),
    timeout: Flag.value('DURATION', 'time limit for one server', { default: '5s' }),
    cluster: Flag.boolean('read the objects of the cluster that the kubeconfig selects'),
    namespace: Flag.value('NAMESPACE', 'with --cluster: only objects in this namespace', {
      char: 'n',
      dependsOn: ['cluster'],
      exclusive: ['all-namespaces'],
    }),
    'all-namespaces': Flag.boolean('with --cluster: objects in all namespaces (the default)', {
      char: 'A',
      dependsOn: ['cluster'],
    }),
    selector: Flag.value('LABELS', 'with --cluster: only objects with these labels, as in kubectl', {
      char: 'l',
      dependsOn: ['cluster'],
    }),
    ...Flag.clusterFlagsBesideCluster,
    ...watchFlags('inspect'),
  }

  /** With --watch, a target that never existed was mistyped, and is an error. */
  private hasSeenAll = false

  protected override async perform() {
    const { flags, operands } = await this.parse(Inspect)
    const showing: Showing = { format: flags.output, outputFile: flags['output-file'] }
    checkFiles({
      inputs: [
        ...[...new Set(operands)].filter(Boolean).map((path) => ({ by: 'TARGET', path })),
        { by: '--password-file', path: flags['password-file'] },
      ],
      outputs: [{ by: '--output-file', path: flags['output-file'], holds: 'public' }],
      replace: true,
    })
    Flag.refuseClusterFlags(flags, 'to inspect a kubeconfig, give it as a target')
    const password = await readPassword(flags['password-file'], this.context)
    const job = {
      targets: operands,
      thresholds: thresholdsOf(flags.warn, flags.crit),
      selection: { only: (flags.only ?? []).flatMap(parseSelectors), sort: flags.sort },
      timeoutMs: parseDuration(flags.timeout, '--timeout'),
      ...(flags.cluster && { cluster: { ...flags, cluster: flags['cluster-name'] } }),
      ...(password === undefined ? {} : { password }),
    }
    const inspectNow = (): InspectJob => ({ ...job, now: this.timeOf(flags.at) })
    if (!flags.watch) return this.inspect(inspectNow(), showing)
    if (operands.includes('-'))
      throw new KcertError('KCERT_USAGE', '--watch cannot read standard input', {
        why: 'standard input can be read only once: inspect a file, or omit --watch',
        next: 'kcert inspect -',
      })
    const act = async (frame: Frame): Promise<ExitCode> => {
      const exit = await this.inspect(inspectNow(), showing, frame)
      this.hasSeenAll = true
      return exit
    }
    // A file is being replaced, or an API server restarts.
    const passes = ({ code }: KcertError): boolean =>
      code === 'KCERT_UNREACHABLE' || (this.hasSeenAll && passingCodes.has(code))
    return this.watch(flags, act, { passes })
  }

  protected override async fail(error: KcertError): Promise<ExitCode> {
    // Every exit code has a meaning for a monitoring system. Any error is UNKNOWN there.
    if (!asksForNagios(this.argv)) return super.fail(error)
    const { line, exit } = nagiosUnknown(`${error.code}: ${error.message}`, error.why)
    await this.answer(line)
    return exit
  }

  private async inspect(job: InspectJob, { format, outputFile }: Showing, frame?: Frame): Promise<ExitCode> {
    const inspected = await inspectTargets(job, this.context)
    const { text, exit } = await renderInspected(
      inspected,
      format,
      await this.view(outputFile),
      this.template ?? [],
    )
    if (outputFile !== undefined) writeFileAtomically(outputFile, text, { mode: 0o644 })
    else await this.answer(frame?.(text, job.now) ?? text)
    for (const error of inspected.unreachable) this.notice(formatError(error, this.context.stderrColor))
    for (const note of inspected.notes) tellLine(this.context.stderr, `note: ${note}`)
    if (inspected.closed > 0) this.notice(closedNotice(inspected.closed))
    return exit
  }

  private async view(outputFile: string | undefined): Promise<View> {
    const { stdoutIsTerminal, stdoutColor, width, env } = this.context
    const isFree = outputFile !== undefined || (!stdoutIsTerminal && env.COLUMNS === undefined)
    // A terminal may have been resized since the start.
    const isResizable = stdoutIsTerminal && env.COLUMNS === undefined
    const columns = isResizable ? (this.context.stdout.columns ?? width) : width
    return {
      width: isFree ? Number.POSITIVE_INFINITY : columns,
      paint: await createPaint(outputFile === undefined ? stdoutColor : 0),
      hasHeadings: this.hasHeadings,
    }
  }

  private timeOf(at: string | undefined): Date {
    const now = this.context.clock()
    return at === undefined ? now : parseInstant(at, now)
  }
}

function closedNotice(count: number): string {
  return `note: skipped ${count} ${count === 1 ? 'file' : 'files'} that this user may not read\nnext: sudo kcert inspect\n`
}

function asksForNagios(argv: readonly string[]): boolean {
  return argv.some((word, i) => {
    const value =
      word === '-o' || word === '--output' ? argv[i + 1] : /^(?:-o=?|--output=)(.+)$/.exec(word)?.[1]
    return value === 'nagios'
  })
}
