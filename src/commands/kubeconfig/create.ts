import * as Flags from '@oclif/core/flags'
import { KcertCommand } from '../../cli/base-command.ts'
import { type ClusterFlags, clusterExits, clusterFlags } from '../../cli/cluster-flags.ts'
import { checkFiles } from '../../cli/command-files.ts'
import { wouldBePrinted } from '../../cli/exposed-key.ts'
import { inFile, readInput, readSecretText } from '../../cli/input.ts'
import { renderReport, reportFormatFlag } from '../../cli/report-format.ts'
import { stdoutView } from '../../cli/view.ts'
import { withCluster } from '../../cli/with-cluster.ts'
import type { Connection } from '../../cluster/connection.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { CreatedKubeconfig } from '../../kubeconfig/report.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'
import { readCertificates } from '../../x509/certificate.ts'

export default class KubeconfigCreate extends KcertCommand {
  static override summary =
    'Make a kubeconfig: for a certificate and key, a request of the cluster that is issued, or a token.'

  static override description =
    `How the server is reached and known comes from the kubeconfig that kcert itself uses, or from --server and --ca, and then no cluster is
asked. Who asks is one of three: a certificate and its key in files, a request of the cluster that is issued with the key that it
was made with, or a bearer token in a file. The pair is held against each other first; the file has mode 0600.

--verify then asks the API server whom it takes the user for.`

  static override exitCodes = {
    [exitCodes.done]: 'it is written; with --verify, it works',
    [exitCodes.usage]: 'wrong usage, a file that cannot be read, or no kubeconfig',
    [exitCodes.no]: 'certificate and key are no pair, it has ended or is not issued, or it does not work',
    [exitCodes.unreachable]: 'the API server could not be reached, or the file could not be written',
    [exitCodes.refused]: 'the file is there already',
    ...clusterExits,
  }

  static override examples = [
    {
      description: 'For a user who has a certificate and a key',
      command:
        '<%= config.bin %> kubeconfig create --user ann --cert ann.crt --key ann.key --out ann.conf --verify',
    },
    {
      description: 'Of a request that is issued',
      command: '<%= config.bin %> kubeconfig create --csr ann --key ann.key --out ann.conf',
    },
    {
      description: 'For a service account, by its token',
      command:
        'kubectl create token deployer | <%= config.bin %> kubeconfig create --user deployer --token-file - --out deployer.conf',
    },
    {
      description: 'Without a cluster at hand',
      command:
        '<%= config.bin %> kubeconfig create --server https://api.example.com:6443 --ca ca.crt --cert ann.crt --key ann.key --out ann.conf',
    },
  ]

  static override flags = {
    out: Flags.string({ description: 'where it goes', helpValue: 'FILE', required: true }),
    user: Flags.string({
      description: 'name of the user in it; if not said: the common name of the certificate',
      helpValue: 'NAME',
    }),
    cert: Flags.string({
      description: 'the client certificate, with what its signer sent along',
      helpValue: 'FILE',
      dependsOn: ['key'],
      exclusive: ['csr', 'token-file'],
    }),
    csr: Flags.string({
      description: 'a request of the cluster that is issued',
      helpValue: 'NAME',
      dependsOn: ['key'],
      exclusive: ['token-file', 'server'],
    }),
    key: Flags.string({ description: 'the private key of --cert or --csr', helpValue: 'FILE' }),
    'password-file': Flags.string({ description: 'file whose first line opens --key', helpValue: 'FILE' }),
    'key-by-path': Flags.boolean({ description: 'leave the key in its file, and name that' }),
    'token-file': Flags.string({
      description: 'file with a bearer token; "-" for standard input',
      helpValue: 'FILE',
      exclusive: ['key'],
      dependsOn: ['user'],
    }),
    namespace: Flags.string({ char: 'n', description: 'namespace of the context', helpValue: 'NAME' }),
    server: Flags.string({
      description: 'URL of the API server, instead of that of the kubeconfig in use',
      helpValue: 'URL',
      dependsOn: ['ca'],
      exclusive: ['kubeconfig', 'context'],
    }),
    ca: Flags.string({
      description: 'CA certificates of --server',
      helpValue: 'FILE',
      dependsOn: ['server'],
    }),
    'cluster-name': Flags.string({
      description: 'name of the cluster in it, with --server',
      helpValue: 'NAME',
      default: 'kubernetes',
    }),
    force: Flags.boolean({ description: 'replace the file when it is there' }),
    'dry-run': Flags.boolean({ description: 'show what would be written, and write nothing' }),
    verify: Flags.boolean({ description: 'ask the API server whether it works' }),
    ...clusterFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(KubeconfigCreate)
    const { context } = this
    const { out, cert, csr, force, key: keyFile } = flags
    const tokenFile = flags['token-file']
    if (cert === undefined && csr === undefined && tokenFile === undefined) throw nobody()
    if (out === '-') throw wouldBePrinted('a kubeconfig with a credential', '--out FILE')
    checkFiles({
      inputs: [
        { by: '--cert', path: cert },
        { by: '--key', path: keyFile },
        { by: '--password-file', path: flags['password-file'] },
        { by: '--token-file', path: tokenFile },
        { by: '--ca', path: flags.ca },
      ],
      outputs: [{ by: '--out', path: out, holds: 'key' }],
      replace: force || flags['dry-run'],
    })
    const [files, { readClientPair }, { writeKeyFile }, editing, { renderCreated }, { renderNotices }] =
      await Promise.all([
        import('../../cli/issued-files.ts'),
        import('../../cli/client-pair.ts'),
        import('../../system/output-file.ts'),
        import('../../cli/kubeconfig-file.ts'),
        import('../../output/kubeconfig.ts'),
        import('../../output/ca.ts'),
      ])
    const { namespace, user } = flags
    const keyByPath = flags['key-by-path']
    const make = async (connection: Connection, csrChain?: Awaited<ReturnType<typeof this.ofRequest>>) => {
      if (tokenFile !== undefined) {
        const token = oneWord(await readSecretText(tokenFile, context), tokenFile)
        return { text: files.tokenKubeconfig(connection, user!, token, namespace), name: user!, notices: [] }
      }
      const pair =
        csrChain ??
        (await readClientPair(
          { certificate: cert!, key: keyFile!, passwordFile: flags['password-file'] },
          context,
        ))
      const { chain, key, notices } = pair
      const wish = { connection, chain, key, keyByPath, user, namespace }
      const name = user ?? (chain[0]?.subject.commonName || 'user')
      return { text: files.kubeconfigOf(wish, context), name, notices, notAfter: chain[0]?.notAfter }
    }
    const { connection, made } =
      flags.server === undefined
        ? await withCluster(context, flags, async (cluster) => {
            const connection = cluster.connection()
            const request = csr === undefined ? undefined : await this.ofRequest(cluster, csr, flags)
            return { connection, made: await make(connection, request) }
          })
        : await this.placeOf(flags.server, flags.ca!, flags['cluster-name']).then(async (connection) => ({
            connection,
            made: await make(connection),
          }))
    if (!flags['dry-run']) writeKeyFile(out, made.text, { replace: force })
    const contexts = await editing.verifyContexts(out, flags, context)
    const report: CreatedKubeconfig = {
      apiVersion: 'kcert/v1',
      kind: 'CreatedKubeconfig',
      outcome: flags['dry-run'] ? 'would-write' : 'written',
      file: out,
      server: connection.server,
      cluster: connection.clusterName,
      user: made.name,
      credential: tokenFile === undefined ? 'client certificate' : 'token',
      ...(made.notAfter === undefined ? {} : { notAfter: rfc3339(made.notAfter) }),
      ...(contexts && { contexts }),
      notices: made.notices,
    }
    if (flags.output === 'text') this.notice(renderNotices(report.notices))
    const view = await stdoutView(context)
    await this.answer(renderReport(flags.output, report, () => renderCreated(report, view)))
    return editing.exitOfContexts(contexts, () => true)
  }

  /** The certificate of a request, held against the key. */
  private async ofRequest(
    cluster: Parameters<Parameters<typeof withCluster>[2]>[0],
    name: string,
    flags: ClusterFlags & { key?: string | undefined; 'password-file'?: string | undefined },
  ) {
    const [fetching, { readKeyFile }] = await Promise.all([
      import('../../cli/fetch-certificate.ts'),
      import('../../cli/key-file.ts'),
    ])
    const { context } = this
    const key = await readKeyFile(
      flags.key!,
      { flag: '--password-file', file: flags['password-file'] },
      context,
    )
    const object = await fetching.settledRequest(cluster.requests, name, undefined)
    const expected = { key, ca: undefined, acceptsNames: false, now: context.clock() }
    return { chain: fetching.fitCertificate(object, expected).chain, key, notices: [] as string[] }
  }

  private async placeOf(server: string, ca: string, clusterName: string): Promise<Connection> {
    const url = URL.parse(server)
    if (url?.protocol !== 'https:')
      throw new KcertError('KCERT_USAGE', `--server ${JSON.stringify(server)} is no URL of an API server`, {
        next: '--server https://HOST:PORT',
      })
    const bytes = await readInput(ca, this.context)
    const certificates = inFile(ca, () => readCertificates(bytes))
    const { chainPem } = await import('../../cli/issued-files.ts')
    return {
      clusterName,
      server: server.replace(/\/$/, ''),
      certificateAuthority: Buffer.from(chainPem(certificates)),
      tlsServerName: undefined,
      skipsTlsVerify: false,
      proxyUrl: undefined,
    }
  }
}

function oneWord(text: string, file: string): string {
  const token = text.trim()
  if (token !== '' && !/\s/.test(token)) return token
  throw new KcertError('KCERT_USAGE', `${file === '-' ? 'standard input' : file} holds no bearer token`, {
    why: token === '' ? 'it is empty' : 'a token is one word',
  })
}

function nobody(): KcertError {
  return new KcertError('KCERT_USAGE', 'it is not said who the kubeconfig is for', {
    next: '--cert FILE --key FILE',
  })
}
