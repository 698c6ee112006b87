import { fitCertificate, settledRequest } from '../../app/csr/fetch.ts'
import { kubeconfigOf, tokenKubeconfig } from '../../app/csr/issued-files.ts'
import { readClientPair } from '../../app/kubeconfig/client-pair.ts'
import { exitOfContexts, verifyContexts } from '../../app/kubeconfig/kubeconfig-file.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { readCertificateFiles } from '../../cli/certificate-files.ts'
import { checkFiles, flagFiles } from '../../cli/command-files.ts'
import { wouldBePrinted } from '../../cli/exposed-key.ts'
import {
  booleanFlag,
  type ClusterFlags,
  clusterExits,
  clusterFlagsBesideUserAndServer,
  otherClusterFlags,
  reportFormatFlag,
  valueFlag,
} from '../../cli/flags.ts'
import { readSecretText } from '../../cli/input.ts'
import { readKeyFile } from '../../cli/key-file.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import type { Connection } from '../../cluster/connection.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { CreatedKubeconfig } from '../../kubeconfig/report.ts'
import { renderCreated } from '../../output/kubeconfig.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'
import { writeKeyFile } from '../../system/output-file.ts'
import { writeCertificates } from '../../x509/certificate.ts'

export default class KubeconfigCreate extends KcertCommand {
  static override summary =
    'Make a kubeconfig: for a certificate and key, a request of the cluster that is issued, or a token.'

  static override description =
    `How the server is reached and known comes from the kubeconfig that kcert itself uses, or from --server and --ca, and then no cluster is
asked. Who asks is one of three: a certificate and its key in files, a request of the cluster that is issued with the key that it
was made with, or a bearer token in a file. The pair is held against each other first; the file has mode 0600.

--verify then asks the API server whom it takes the user for.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'it is written; with --verify, it works',
    [exitCodes.usage]: 'wrong usage, a file that cannot be read, or no kubeconfig',
    [exitCodes.no]: 'certificate and key are no pair, it has ended or is not issued, or it does not work',
    [exitCodes.unreachable]: 'the API server could not be reached, or the file could not be written',
    [exitCodes.refused]: 'the file is there already',
  }

  static override examples = KcertCommand.examplesOf({
    'For a user who has a certificate and a key':
      'kcert kubeconfig create --user ann --cert ann.crt --key ann.key --out ann.conf --verify',
    'Of a request that is issued': 'kcert kubeconfig create --csr ann --key ann.key --out ann.conf',
    'For a service account, by its token':
      'kubectl create token deployer | kcert kubeconfig create --user deployer --token-file - --out deployer.conf',
    'Without a cluster at hand':
      'kcert kubeconfig create --server https://api.example.com:6443 --ca ca.crt --cert ann.crt --key ann.key --out ann.conf',
  })

  static override flags = {
    out: valueFlag('FILE', 'where it goes', { required: true }),
    user: valueFlag('NAME', 'name of the user in it; if not said: the common name of the certificate'),
    cert: valueFlag('FILE', 'the client certificate, with what its signer sent along', {
      exclusive: ['csr', 'token-file'],
      dependsOn: ['key'],
    }),
    csr: valueFlag('NAME', 'a request of the cluster that is issued', {
      exclusive: ['token-file', 'server'],
      dependsOn: ['key'],
    }),
    key: valueFlag('FILE', 'the private key of --cert or --csr'),
    'password-file': valueFlag('FILE', 'file whose first line opens --key'),
    'key-by-path': booleanFlag('leave the key in its file, and name that'),
    'token-file': valueFlag('FILE', 'file with a bearer token; "-" for standard input', {
      exclusive: ['key'],
      dependsOn: ['user'],
    }),
    namespace: valueFlag('NAME', 'namespace of the context', { char: 'n' }),
    server: valueFlag('URL', 'URL of the API server, instead of that of the kubeconfig in use', {
      exclusive: otherClusterFlags,
      dependsOn: ['ca'],
    }),
    ca: valueFlag('FILE', 'CA certificates of --server', { dependsOn: ['server'] }),
    'cluster-name': valueFlag('NAME', 'name of the cluster in it, with --server', { default: 'kubernetes' }),
    force: booleanFlag('replace the file when it is there'),
    'dry-run': booleanFlag('show what would be written, and write nothing'),
    verify: booleanFlag('ask the API server whether it works'),
    ...clusterFlagsBesideUserAndServer,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(KubeconfigCreate)
    const { context } = this
    const { out, cert, csr, force, key: keyFile } = flags
    const tokenFile = flags['token-file']
    if (cert === undefined && csr === undefined && tokenFile === undefined)
      throw new KcertError('KCERT_USAGE', 'it is not said who the kubeconfig is for', {
        next: '--cert FILE --key FILE',
      })
    if (out === '-') throw wouldBePrinted('a kubeconfig with a credential', '--out FILE')
    checkFiles({
      inputs: flagFiles(flags, 'cert', 'key', 'password-file', 'token-file', 'ca'),
      outputs: [{ by: '--out', path: out, holds: 'key' }],
      replace: force || flags['dry-run'],
    })
    const { namespace, user } = flags
    const keyByPath = flags['key-by-path']
    const make = async (connection: Connection, csrChain?: Awaited<ReturnType<typeof this.ofRequest>>) => {
      if (tokenFile !== undefined) {
        const token = oneWord(await readSecretText(tokenFile, context), tokenFile)
        return { text: tokenKubeconfig(connection, user!, token, namespace), name: user!, notices: [] }
      }
      const pair =
        csrChain ??
        (await readClientPair(
          { certificate: cert!, key: keyFile!, passwordFile: flags['password-file'] },
          context,
        ))
      const { chain, key, notices } = pair
      const settings = { connection, chain, key, keyByPath, user, namespace }
      const name = user ?? (chain[0]?.subject.commonName || 'user')
      return { text: kubeconfigOf(settings, context), name, notices, notAfter: chain[0]?.notAfter }
    }
    const { connection, made } =
      flags.server === undefined
        ? await this.onCluster({ ...flags, user: undefined }, async (cluster) => {
            const connection = cluster.connection()
            const request = csr === undefined ? undefined : await this.ofRequest(cluster, csr, flags)
            return { connection, made: await make(connection, request) }
          })
        : await this.placeOf(flags.server, flags.ca!, flags['cluster-name']).then(async (connection) => ({
            connection,
            made: await make(connection),
          }))
    if (!flags['dry-run']) writeKeyFile(out, made.text, { replace: force })
    const contexts = await verifyContexts(out, flags, context)
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
    await this.show(flags.output, report, renderCreated, report.notices)
    return exitOfContexts(contexts, () => true)
  }

  /** The certificate of a request, held against the key. */
  private async ofRequest(
    cluster: Cluster,
    name: string,
    flags: ClusterFlags & { key?: string | undefined; 'password-file'?: string | undefined },
  ) {
    const { context } = this
    const key = await readKeyFile(flags.key!, flags['password-file'], context)
    const object = await settledRequest(cluster.requests, name, undefined)
    const expected = { key, ca: undefined, acceptsNames: false, now: context.clock() }
    return { chain: fitCertificate(object, expected).chain, key, notices: [] as string[] }
  }

  private async placeOf(server: string, ca: string, clusterName: string): Promise<Connection> {
    const url = URL.parse(server)
    if (url?.protocol !== 'https:')
      throw new KcertError('KCERT_USAGE', `--server ${JSON.stringify(server)} is no URL of an API server`, {
        next: '--server https://HOST:PORT',
      })
    const certificates = await readCertificateFiles([ca], this.context)
    return {
      clusterName,
      server: server.replace(/\/$/, ''),
      certificateAuthority: Buffer.from(writeCertificates(certificates)),
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
