import { type FlagsOf, KcertCommand } from '../cli/base-command.ts'
import * as Flag from '../cli/flags.ts'
import { descriptorOf, readInput } from '../cli/input.ts'
import { parseDuration, parseInstant } from '../cli/instant.ts'
import { exitCodes } from '../errors/codes.ts'
import { argumentVector, type CommandLine, commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Source } from '../inspection/source.ts'
import { renderVerification } from '../output/verification.ts'
import { isLarge, tuneForManyCertificates } from '../system/engine.ts'
import { readFile } from '../system/files.ts'
import { type CertificateInput, type InputRole, readCertificateInput } from '../verification/input.ts'
import { verify } from '../verification/verification.ts'
import { type Purpose, purposes } from '../x509/chain.ts'

export default class Verify extends KcertCommand {
  static override summary = 'Check whether Kubernetes components accept a certificate, and if not, why.'

  static override description =
    `Verifies the chain as Go's crypto/x509 does (API servers, kubelets, etcd and kubectl use it), and shows where OpenSSL, Node.js or
Python (3.13) differ, and why. Like Go, kcert tries every path from the leaf to a root. On each path it checks validity, CA flags, path
lengths, name constraints, critical extensions, and extended key usages from the root down. Revocation is not checked, because
Kubernetes does not check it. kcert connects to a server only if LEAF is HOST:PORT.

The leaf is the first certificate of its file. The certificates after it are intermediates, as a server sends them. Each input may
be PEM, DER, PKCS#7, a Secret or ConfigMap, or a kubeconfig. A kubeconfig as roots provides the certificate-authority of its
cluster. A kubeconfig as leaf provides its client certificate, which must match the key of the same user. Without --roots, it is
verified with the CA of the same file. Go reads roots and intermediates only as PEM. If such a file is DER or PKCS#7, or begins
with a byte order mark, kcert ignores it as Go does, and reports that.

The purposes of --purpose:

  server  as TLS clients verify a server certificate; with --name, also whether it is valid for that name
  client  as an API server verifies a client certificate; shows its user and groups
  any     without checking extended key usages`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'trusted',
    usage: 'wrong usage, or an input cannot be read',
    no: 'not trusted, the leaf is malformed, or the key of a kubeconfig does not match',
    unreachable: 'a server could not be reached',
  })

  static override examples = KcertCommand.examplesOf({
    'Check whether clients accept the certificate of the API server for an address':
      'kcert verify /etc/kubernetes/pki/apiserver.crt --roots /etc/kubernetes/pki/ca.crt --name 10.96.0.1',
    'Check the client certificate of a kubeconfig with the CA of that file':
      'kcert verify ~/.kube/config --context production',
    'Check whether API servers accept a client certificate, and show its user':
      'kcert verify admin.crt --roots /etc/kubernetes/pki/ca.crt --purpose client',
    'Check whether it will be accepted in 90 days': 'kcert verify apiserver.crt --roots ca.crt --at +90d',
    'Verify the chain that a server sends, with the CA of a kubeconfig':
      'kcert verify 192.0.2.10:6443 --roots ~/.kube/config --name 192.0.2.10',
    'Verify a Secret, with intermediates in another file, in a script':
      'kubectl get secret web-tls -o yaml | kcert verify - --roots root.pem --intermediates ca-chain.pem --name web.example.com -o json',
  })

  static override args = {
    leaf: Flag.operand('file with the certificate, "-" for standard input, a kubeconfig, or HOST:PORT'),
  }

  static override flags = {
    roots: Flag.repeated(
      'FILE',
      'file with trusted CAs: a bundle or a kubeconfig; required unless LEAF is a kubeconfig',
    ),
    intermediates: Flag.repeated('FILE', 'file with intermediate CAs, which are not trusted by themselves'),
    context: Flag.value('NAME', 'context of the kubeconfig (default its current-context)'),
    at: Flag.value('TIME', 'verify at this time (default now): 2027-01-01, 2027-01-01T12:00:00Z or +90d'),
    purpose: Flag.word(purposes, 'purpose of the leaf (default server; client if LEAF is a kubeconfig)'),
    name: Flag.value('HOST-OR-IP', 'host name or IP address that the leaf must be valid for'),
    output: Flag.reportFormat('output format'),
    timeout: Flag.value('DURATION', 'time limit for one server', { default: '5s' }),
  }

  protected override async perform() {
    const { args, flags } = await this.parse(Verify)
    const now = this.context.clock()
    const at = flags.at === undefined ? now : parseInstant(flags.at, now)
    if (flags.name !== undefined) checkName(flags.name)
    const { roots: rootFiles = [], intermediates: intermediateFiles = [] } = flags
    refuseSecondStandardInput([args.leaf, ...rootFiles, ...intermediateFiles])

    const { context } = flags
    const leafSource = await this.leafSource(args.leaf, parseDuration(flags.timeout, '--timeout'))
    const leaf = await this.read(leafSource, 'leaf', context)
    if (rootFiles.length === 0 && !leaf.isKubeconfig)
      throw new KcertError('KCERT_USAGE', '--roots is required', {
        why: 'kcert verifies with the CAs that you give, never with the trust store of this machine',
        next: commandLine`kcert verify ${args.leaf} --roots /etc/kubernetes/pki/ca.crt`,
      })
    const roots =
      rootFiles.length === 0
        ? [await this.read(leafSource, 'roots', context)]
        : await this.readAll(rootFiles, 'roots', context)
    const intermediates = await this.readAll(intermediateFiles, 'intermediates', context)

    const isOneKubeconfig = [leaf, ...roots, ...intermediates].some(({ isKubeconfig }) => isKubeconfig)
    if (context !== undefined && !isOneKubeconfig)
      throw new KcertError('KCERT_USAGE', `--context ${JSON.stringify(context)} requires a kubeconfig`, {
        why: 'none of the inputs is a kubeconfig; only a kubeconfig has contexts',
      })

    const purpose = flags.purpose ?? (leaf.isKubeconfig ? 'client' : 'server')
    const withPurpose = (other: Purpose): CommandLine =>
      verifyCommand(args.leaf, { ...flags, purpose: other })
    const report = verify({ leaf, roots, intermediates }, { now, at, purpose, name: flags.name, withPurpose })
    await this.show(flags.output, report, renderVerification)
    return report.trusted ? exitCodes.done : exitCodes.no
  }

  private async readAll(
    names: readonly string[],
    role: InputRole,
    context: string | undefined,
  ): Promise<CertificateInput[]> {
    const inputs: CertificateInput[] = []
    for (const name of names) inputs.push(await this.read(await this.source(name), role, context))
    return inputs
  }

  private read(source: Source, role: InputRole, context: string | undefined): Promise<CertificateInput> {
    if (isLarge(source.bytes)) tuneForManyCertificates()
    const options = { readReferencedFile: readFile, context, contextFlag: '--context' }
    return readCertificateInput(source, role, options)
  }

  private async source(name: string): Promise<Source> {
    const read = descriptorOf(name) === undefined ? readFile(name) : undefined
    if (read !== undefined && 'bytes' in read) return read
    // For the errors of readInput, and for pipes.
    return { name, bytes: await readInput(name, this.context) }
  }

  /** Only the leaf may be HOST:PORT: certificates from the network must not be trusted. A file with that name has precedence. */
  private async leafSource(name: string, timeoutMs: number): Promise<Source> {
    const mayBeServer = /^https:\/\/|^[^/]+:\d+$/.test(name) && !('bytes' in readFile(name))
    if (!mayBeServer) return this.source(name)
    const [{ parseEndpoint }, { readServed }] = await Promise.all([
      import('../tls/endpoint.ts'),
      import('../tls/served.ts'),
    ])
    const endpoint = parseEndpoint(name)
    return endpoint === undefined ? this.source(name) : readServed(endpoint, timeoutMs)
  }
}

type VerifyFlags = FlagsOf<typeof Verify.flags>

/** Returns the command with the same inputs and this purpose. No client certificate is valid for a host name. */
function verifyCommand(leaf: string, flags: VerifyFlags): CommandLine {
  const { roots = [], intermediates = [], context, at, purpose } = flags
  const name = purpose === 'client' ? undefined : flags.name
  const words = [
    ...roots.flatMap((file) => ['--roots', file]),
    ...intermediates.flatMap((file) => ['--intermediates', file]),
    ...Object.entries({ context, at, purpose, name }).flatMap(([flag, value]) =>
      value === undefined ? [] : [`--${flag}`, value],
    ),
  ]
  return commandLine`kcert verify ${leaf} ${argumentVector(words)}`
}

/** Refuses a URL, or an address with a port: no certificate has such a name, so a new one would not help. */
function checkName(name: string): void {
  if (name === '') {
    throw new KcertError('KCERT_USAGE', '--name is empty', {
      why: 'a shell variable may be unset; without --name, no name is checked',
      next: 'kcert verify --help',
    })
  }
  const bare = name
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
    .replace(/\/.*$/s, '')
    .replace(/^([^:]+|\[[^\]]+\]):\d+$/, '$1')
  if (bare === name) return
  throw new KcertError('KCERT_USAGE', `--name ${JSON.stringify(name)} is not a host name or IP address`, {
    why: 'certificates are valid for host names and IP addresses, without scheme, port and path',
    next: /^[\w.:[\]-]+$/.test(bare) ? commandLine`--name ${bare}` : '--name example.com',
  })
}

function refuseSecondStandardInput(names: readonly string[]): void {
  if (names.filter((one) => one === '-').length < 2) return
  throw new KcertError('KCERT_USAGE', 'standard input can be used only once', {
    why: 'several inputs are "-"; use a file for the others',
  })
}
