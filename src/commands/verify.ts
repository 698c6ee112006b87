import { KcertCommand } from '../cli/base-command.ts'
import { operand, repeatedFlag, reportFormatFlag, valueFlag, wordFlag } from '../cli/flags.ts'
import { descriptorOf, readInput } from '../cli/input.ts'
import { parseDuration, parseInstant } from '../cli/instant.ts'
import { type ExitCode, exitCodes } from '../errors/codes.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Source } from '../inspection/source.ts'
import { renderVerification } from '../output/verification.ts'
import { isMuch, prepareForMuch } from '../system/engine.ts'
import { readFile } from '../system/files.ts'
import { type CertificateInput, type InputRole, readCertificateInput } from '../verification/input.ts'
import { verify } from '../verification/verification.ts'
import { purposes } from '../x509/chain.ts'

export default class Verify extends KcertCommand {
  static override summary =
    'Say whether a Kubernetes component would accept a certificate, and if not, which one is at fault.'

  static override description =
    `Builds the chain from the leaf to the roots and judges it as Go's crypto/x509 does, with which API servers, kubelets, etcd
and kubectl are made: every path that there is, validity, CA flags, path lengths, name constraints, critical extensions, extended key
usages from the root down. Then it says where openssl, Node.js and Python (3.13) would answer otherwise, and why.
Revocation is not looked at, as Kubernetes does not look at it. No socket is opened, unless the leaf is named as host:port.

The leaf is the first certificate of its file; those behind it are intermediates, as a server sends them along. Each input may be
PEM, DER, PKCS#7, a Secret or ConfigMap, or a kubeconfig: as roots its cluster's certificate-authority, as leaf its client certificate,
which is held against the key beside it and, without --roots, against the CA of the same file. Where Go reads PEM and finds none (DER, PKCS#7, a byte order mark), a
file of roots or intermediates counts for nothing, as in Go, and that is said.

  server  what a TLS client does with a server's certificate; with --name also whether it is valid for that name
  client  what an API server does with a client certificate; shows the user and the groups that it stands for
  any     the extended key usages are not looked at`

  static override exitCodes = {
    [exitCodes.done]: 'trusted',
    [exitCodes.usage]: 'wrong usage, or an input that cannot be read',
    [exitCodes.no]: 'not trusted, the leaf is malformed, or a kubeconfig has another key beside it',
    [exitCodes.unreachable]: 'a server was not reached',
  }

  static override examples = KcertCommand.examplesOf({
    "Would clients accept the API server's certificate under this name?":
      'kcert verify /etc/kubernetes/pki/apiserver.crt --roots /etc/kubernetes/pki/ca.crt --name 10.96.0.1',
    "Would the API server accept the client certificate of a kubeconfig, by that file's own CA?":
      'kcert verify ~/.kube/config --context production',
    'Would an API server accept this client certificate, and as whom?':
      'kcert verify admin.crt --roots /etc/kubernetes/pki/ca.crt --purpose client',
    'Will it still be accepted in 90 days?': 'kcert verify apiserver.crt --roots ca.crt --at +90d',
    'The chain that a server presents, against the CA of a kubeconfig':
      'kcert verify 192.0.2.10:6443 --roots ~/.kube/config --name 192.0.2.10',
    'A Secret, with intermediates in a file of their own, for a script':
      'kubectl get secret web-tls -o yaml | kcert verify - --roots root.pem --intermediates ca-chain.pem --name web.example.com -o json',
  })

  static override args = {
    leaf: operand('file with the certificate, "-" for standard input, a kubeconfig, or host:port'),
  }

  static override flags = {
    roots: repeatedFlag(
      'FILE',
      'file with trusted CAs: a bundle, or a kubeconfig; needed unless LEAF is a kubeconfig',
    ),
    intermediates: repeatedFlag(
      'FILE',
      'file with CAs that are not trusted by themselves, but may stand between leaf and root',
    ),
    context: valueFlag('NAME', 'which context of a kubeconfig is meant; if not said: its current-context'),
    at: valueFlag('TIME', 'judge as of this time: 2027-01-01, 2027-01-01T12:00:00Z or +90d'),
    purpose: wordFlag(
      purposes,
      'what the leaf is used for; by default server, and client for the leaf of a kubeconfig',
    ),
    name: valueFlag('HOST-OR-IP', 'host name or IP address that the leaf must be valid for'),
    output: reportFormatFlag('how to show it'),
    timeout: valueFlag('DURATION', 'how long to wait for a server', { default: '5s' }),
  }

  protected override async perform(): Promise<ExitCode> {
    const { args, flags } = await this.parse(Verify)
    const now = this.context.clock()
    const at = flags.at === undefined ? now : parseInstant(flags.at, now)
    if (flags.name !== undefined) checkName(flags.name)
    const { roots: rootFiles = [], intermediates: intermediateFiles = [] } = flags
    refuseSecondStandardInput([args.leaf, ...rootFiles, ...intermediateFiles])

    const { context } = flags
    const leafSource = await this.leafSource(args.leaf, parseDuration(flags.timeout, '--timeout'))
    const leaf = await this.read(leafSource, 'leaf', context)
    if (rootFiles.length === 0 && !leaf.isKubeconfig) throw noRoots(args.leaf)
    const roots =
      rootFiles.length === 0
        ? [await this.read(leafSource, 'roots', context)]
        : await this.readAll(rootFiles, 'roots', context)
    const intermediates = await this.readAll(intermediateFiles, 'intermediates', context)

    const isOneKubeconfig = [leaf, ...roots, ...intermediates].some(({ isKubeconfig }) => isKubeconfig)
    if (context !== undefined && !isOneKubeconfig)
      throw new KcertError(
        'KCERT_USAGE',
        `--context ${JSON.stringify(context)} is given, and no kubeconfig`,
        {
          why: 'only a kubeconfig has contexts',
          next: 'name the kubeconfig as LEAF or with --roots, or leave --context out',
        },
      )

    const purpose = flags.purpose ?? (leaf.isKubeconfig ? 'client' : 'server')
    const report = verify({ leaf, roots, intermediates }, { now, at, purpose, name: flags.name })
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
    if (isMuch(source.bytes)) prepareForMuch()
    const options = { readReferencedFile: readFile, context, contextFlag: '--context' }
    return readCertificateInput(source, role, options)
  }

  private async source(name: string): Promise<Source> {
    const read = descriptorOf(name) === undefined ? readFile(name) : undefined
    if (read !== undefined && 'bytes' in read) return read
    // For its errors, and for pipes.
    return { name, bytes: await readInput(name, this.context) }
  }

  /** Only a leaf may be a server: nobody should trust what comes over the network. A file of that name wins. */
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

function noRoots(leaf: string): KcertError {
  return new KcertError('KCERT_USAGE', 'which roots are trusted? --roots is missing', {
    why: 'a chain is judged against the CAs of a cluster, never against those of this machine',
    next: commandLine`kcert verify ${leaf} --roots /etc/kubernetes/pki/ca.crt`,
  })
}

/** A URL or an address with its port is no name that a certificate could have, and no reason to issue a new one. */
function checkName(name: string): void {
  if (name === '') {
    throw new KcertError('KCERT_USAGE', '--name is empty', {
      why: 'perhaps a variable that is not set; without --name no name is looked at',
      next: 'kcert verify --help',
    })
  }
  const bare = name
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
    .replace(/\/.*$/s, '')
    .replace(/^([^:]+|\[[^\]]+\]):\d+$/, '$1')
  if (bare === name) return
  throw new KcertError('KCERT_USAGE', `--name ${JSON.stringify(name)} is no host name or address`, {
    why: 'a certificate is valid for names and addresses, whatever the scheme, port and path',
    next: /^[\w.:[\]-]+$/.test(bare) ? commandLine`--name ${bare}` : '--name HOST-OR-IP',
  })
}

function refuseSecondStandardInput(names: readonly string[]): void {
  if (names.filter((one) => one === '-').length < 2) return
  throw new KcertError('KCERT_USAGE', 'standard input is named twice', {
    why: 'what was read from it once is gone',
    next: 'put one of the inputs into a file',
  })
}
