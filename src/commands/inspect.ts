import {
  type InspectFormat,
  type InspectJob,
  inspectFormats,
  inspectTargets,
  renderInspected,
} from '../app/inspect/inspect.ts'
import { checkFiles } from '../cli/command-files.ts'
import {
  booleanFlag,
  clusterExits,
  clusterFlags,
  formatFlag,
  operands,
  repeatedFlag,
  valueFlag,
  wordFlag,
} from '../cli/flags.ts'
import { readPassword } from '../cli/input.ts'
import { parseDuration, parseInstant } from '../cli/instant.ts'
import { tellLine } from '../cli/tell-line.ts'
import { type Frame, WatchingCommand, watchFlags } from '../cli/watching-command.ts'
import { type ExitCode, exitCodes } from '../errors/codes.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { parseSelectors, selectors, sortings } from '../inspection/selection.ts'
import {
  defaultThresholds,
  parseThreshold,
  parseThresholds,
  type Thresholds,
} from '../inspection/thresholds.ts'
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
  static override summary = 'Show what certificates there are, when they expire, and what is wrong with them.'

  static override description =
    `Reads kubeconfigs, PEM, DER, PKCS#7, PKCS#12, certificate requests, keys, and Secrets, ConfigMaps and CSRs as YAML or JSON. Folders are walked; kubeadm's /etc/kubernetes and the kubelet's /var/lib/kubelet/pki are recognised, and each file is named by its role there.

Without a target: what there is of $KUBECONFIG, ~/.kube/config, /etc/kubernetes and /var/lib/kubelet/pki.

No cluster is asked and no plugin of a kubeconfig is run, but with --cluster. A socket is opened only to a server that is named as host:port.

With --cluster also what a cluster holds, page by page: the kubeconfig in use, the chains of its API servers, Secrets, ConfigMaps (cluster-info, kube-root-ca.crt, which is shown once where all namespaces have the same, extension-apiserver-authentication), webhooks, APIServices, CRDs, CertificateSigningRequests, PodCertificateRequests and ClusterTrustBundles. Sources are named as kubectl takes them: "secret shop/web-tls". What may not be listed is SOURCE_UNREADABLE, and the rest is read. Of a private key its public half is kept, to tell whether it belongs to its certificate.

A problem is info, warning or critical. By default little time is left below the lesser of 30 days and 20 % of the lifetime (warning), and of 7 days and 5 % (critical).

text        tables, then what is wrong and what to do next
wide        every field, one line each, however long
tree        who issued what, over all inputs
json, yaml  the whole report, as in docs/schemas
prometheus  for node_exporter's textfile collector
nagios      one line, and a monitoring plugin's exit codes
pem         the certificates themselves
html        a page in one file: what is wrong, a timeline of what expires when; it needs no network and no script`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'no problem worse than info',
    [exitCodes.usage]: 'wrong usage, or none of the targets exists and can be read',
    [exitCodes.no]:
      'a problem is warning or critical, also a link that leads nowhere, or one of several targets that cannot be read (with -o nagios: the codes of a monitoring plugin)',
    [exitCodes.unreachable]: 'a server was not reached, or the output file could not be written',
  }

  static override examples = WatchingCommand.examplesOf({
    'This machine, by itself': 'kcert inspect',
    'A kubeconfig: every cluster, user and context': 'kcert inspect ~/.kube/config',
    'A control-plane node, only what needs attention':
      'sudo kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only expired,expiring',
    'The chain that an API server presents': 'kcert inspect 192.0.2.10:6443',
    'Everything that a cluster holds, only what needs attention':
      'kcert inspect --cluster --only expired,expiring',
    'The TLS Secrets of one namespace': 'kubectl get secrets -n shop -o json | kcert inspect -',
    'What will have expired at the end of next quarter':
      'kcert inspect /etc/kubernetes --at +90d --only expired',
    'For node_exporter, written so that it never reads half a file':
      'kcert inspect /etc/kubernetes -o prometheus --output-file /var/lib/node_exporter/textfile/kcert.prom',
    'As a Nagios plugin': 'kcert inspect /etc/kubernetes -o nagios --warn 30d --crit 7d',
    'A page for a colleague, or for the file':
      'kcert inspect --cluster -o html --output-file certificates.html',
  })

  static override args = {
    target: operands(
      'file, folder, "-" for standard input, or host:port ([::1]:6443 for IPv6, https://… also). A file wins over a host:port of the same name.',
    ),
  }

  static override flags = {
    output: formatFlag(inspectFormats, 'how to show it'),
    'output-file': valueFlag(
      'FILE',
      'write it to this file, whole or not at all (mode 0644; a file that is there keeps its own)',
    ),
    only: repeatedFlag(
      'WHICH',
      `show only these, and their problems; several with commas: ${selectors.join(', ')}`,
    ),
    sort: wordFlag(sortings, 'the order of the certificates', { default: 'expiry' }),
    warn: valueFlag(
      '30d,20%',
      'warn when less is left: a duration, a share of the lifetime, or both, of which the lesser counts',
    ),
    crit: valueFlag('7d,5%', 'critical when less is left, as with --warn'),
    at: valueFlag('TIME', 'judge as of this time: 2027-01-01, 2027-01-01T12:00:00Z or +90d'),
    'password-file': valueFlag('FILE', 'file whose first line opens PKCS#12 keystores and encrypted keys'),
    timeout: valueFlag('DURATION', 'how long to wait for a server', { default: '5s' }),
    cluster: booleanFlag('read what the cluster of the kubeconfig holds'),
    ...clusterFlags,
    ...watchFlags('inspect'),
  }

  /** With --watch: a name that nothing was ever found under was mistyped. */
  private hasSeenAll = false

  protected override async perform(): Promise<ExitCode> {
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
    refuseClusterFlags(flags)
    const password = await readPassword(flags['password-file'], this.context)
    const job = {
      targets: operands,
      thresholds: thresholdsOf(flags.warn, flags.crit),
      selection: { only: (flags.only ?? []).flatMap(parseSelectors), sort: flags.sort },
      timeoutMs: parseDuration(flags.timeout, '--timeout'),
      ...(flags.cluster && { cluster: flags }),
      ...(password === undefined ? {} : { password }),
    }
    const inspectNow = (): InspectJob => ({ ...job, now: this.timeOf(flags.at) })
    if (!flags.watch) return this.inspect(inspectNow(), showing)
    if (operands.includes('-'))
      throw new KcertError('KCERT_USAGE', '--watch cannot read standard input again and again', {
        why: 'what was read from it once is gone',
        next: 'name a file, or leave out --watch',
      })
    const act = async (frame: Frame): Promise<ExitCode> => {
      const exit = await this.inspect(inspectNow(), showing, frame)
      this.hasSeenAll = true
      return exit
    }
    // A file that is replaced, an API server that restarts.
    const passes = ({ code }: KcertError): boolean =>
      code === 'KCERT_UNREACHABLE' || (this.hasSeenAll && passingCodes.has(code))
    return this.watch(flags.every, act, passes)
  }

  protected override async fail(error: KcertError): Promise<ExitCode> {
    // A monitoring system takes every other exit code for one of its own: whatever went wrong, it is UNKNOWN to it.
    if (!asksForNagios(this.argv)) return super.fail(error)
    const { line, exit } = nagiosUnknown(`${error.code}: ${error.message}`, error.why)
    await this.answer(line)
    return exit
  }

  private async inspect(job: InspectJob, { format, outputFile }: Showing, frame?: Frame): Promise<ExitCode> {
    const inspected = await inspectTargets(job, this.context)
    const { text, exit } = await renderInspected(inspected, format, await this.view(outputFile))
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
    }
  }

  private timeOf(at: string | undefined): Date {
    const now = this.context.clock()
    return at === undefined ? now : parseInstant(at, now)
  }
}

/** A kubeconfig to be looked at is a target; as a flag it says which cluster to ask. */
function refuseClusterFlags(flags: {
  cluster: boolean
  kubeconfig?: string | undefined
  context?: string | undefined
}) {
  const named = flags.kubeconfig === undefined ? flags.context : flags.kubeconfig
  if (flags.cluster || named === undefined) return
  const flag = flags.kubeconfig === undefined ? '--context' : '--kubeconfig'
  throw new KcertError('KCERT_USAGE', `${flag} goes with --cluster`, {
    why: 'without it no cluster is asked, and a kubeconfig is inspected as FILE',
    next:
      flag === '--kubeconfig'
        ? commandLine`kcert inspect --cluster --kubeconfig ${named}`
        : 'kcert inspect --cluster --help',
  })
}

function thresholdsOf(warn: string | undefined, crit: string | undefined): Thresholds {
  if (warn === undefined && crit === undefined) return defaultThresholds
  if (warn !== undefined && crit !== undefined) return parseThresholds(warn, crit)
  return {
    warn: warn === undefined ? defaultThresholds.warn : parseThreshold(warn),
    crit: crit === undefined ? defaultThresholds.crit : parseThreshold(crit),
  }
}

function closedNotice(count: number): string {
  return `note: ${count} ${count === 1 ? 'file is' : 'files are'} not for this user to read and not judged; sudo kcert inspect reads all\n`
}

function asksForNagios(argv: readonly string[]): boolean {
  return argv.some((word, i) => {
    const value =
      word === '-o' || word === '--output' ? argv[i + 1] : /^(?:-o=?|--output=)(.+)$/.exec(word)?.[1]
    return value === 'nagios'
  })
}
