import { fitCertificate, settledRequest } from '../../app/csr/fetch.ts'
import { kubeconfigOf, tokenKubeconfig } from '../../app/csr/issued-files.ts'
import { readClientPair } from '../../app/kubeconfig/client-pair.ts'
import { embeddingFlags, exitOfContexts, verifyContexts } from '../../app/kubeconfig/kubeconfig-file.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { readCertificateFiles } from '../../cli/certificate-files.ts'
import { checkFiles, flagFiles } from '../../cli/command-files.ts'
import { wouldBePrinted } from '../../cli/exposed-key.ts'
import * as Flag from '../../cli/flags.ts'
import { readSecretText } from '../../cli/input.ts'
import { readKeyFile } from '../../cli/key-file.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import type { Connection } from '../../cluster/connection.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import type { CreatedKubeconfig } from '../../kubeconfig/report.ts'
import { renderCreated } from '../../output/kubeconfig.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'
import { writeKeyFile } from '../../system/output-file.ts'
import { writeCertificates } from '../../x509/certificate.ts'

export default class KubeconfigCreate extends KcertCommand {
  static override summary = 'Create a kubeconfig for a client certificate, an issued CSR, or a token.'

  static override description =
    `Server and CA come from the kubeconfig that kcert itself uses, or from --server and --certificate-authority, which need no
connection to a cluster. The user's credential is one of three: a client certificate and its key in files, an issued CSR of the
cluster and the key that it was created with, or a bearer token in a file. kcert first checks that certificate and key match. The
file has mode 0600.

--verify then connects to the API server and shows how it identifies the user.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the kubeconfig was written; with --verify, it works',
    usage: 'wrong usage, a file cannot be read, or no cluster is configured',
    no: 'the key does not match, the certificate has expired or is not issued, or with --verify the kubeconfig does not work',
    unreachable: 'the API server could not be reached, or the file cannot be written',
    refused: 'the file already exists',
  })

  static override examples = KcertCommand.examplesOf({
    'Create it for a user with a certificate and a key':
      'kcert kubeconfig create --user ann --client-certificate ann.crt --client-key ann.key --out ann.conf --verify',
    'Create it for an issued CSR': 'kcert kubeconfig create --csr ann --client-key ann.key --out ann.conf',
    'Create it for a service account, with a token':
      'kubectl create token deployer | kcert kubeconfig create --user deployer --token-file - --out deployer.conf',
    'Reference the certificate and key by path instead of embedding them':
      'kcert kubeconfig create --client-certificate ann.crt --client-key ann.key --no-embed-certs --out ann.conf',
    'Create it without a connection to the cluster':
      'kcert kubeconfig create --server https://api.example.com:6443 --certificate-authority ca.crt --client-certificate ann.crt --client-key ann.key --out ann.conf',
  })

  static override flags = {
    out: Flag.value('FILE', 'file for the kubeconfig', { required: true }),
    user: Flag.value('NAME', 'name of the user in the kubeconfig (default common name of the certificate)'),
    'client-certificate': Flag.value('FILE', 'client certificate, with its intermediates (also --cert)', {
      exclusive: ['csr', 'token-file'],
      dependsOn: ['client-key'],
      aliases: ['cert'],
    }),
    csr: Flag.value('NAME', 'issued CSR of the cluster', {
      exclusive: ['token-file', 'server'],
      dependsOn: ['client-key'],
    }),
    'client-key': Flag.value('FILE', 'private key of the certificate or CSR (also --key)', {
      aliases: ['key'],
    }),
    'password-file': Flag.value('FILE', 'file with the password of --client-key on its first line'),
    'embed-certs': embeddingFlags['embed-certs'],
    'key-by-path': Flag.boolean('store the path of the key, and the content of the certificate'),
    'token-file': Flag.value('FILE', 'file with a bearer token; "-" for standard input', {
      exclusive: ['client-key'],
      dependsOn: ['user'],
    }),
    namespace: Flag.value('NAME', 'namespace of the context', { char: 'n' }),
    server: Flag.value('URL', 'URL of the API server, instead of the one in the current kubeconfig', {
      exclusive: Flag.otherClusterFlags.filter((flag) => flag !== 'certificate-authority'),
      dependsOn: ['certificate-authority'],
    }),
    'cluster-name': Flag.value('NAME', 'name of the cluster in the kubeconfig, with --server', {
      default: 'kubernetes',
    }),
    force: Flag.boolean('overwrite an existing file'),
    'dry-run': Flag.boolean('show what would be written, without writing it'),
    verify: Flag.boolean('connect to the API server and show how it identifies the user'),
    ...Flag.clusterFlagsBesideUserAndServer,
    'certificate-authority': Flag.value(
      'FILE',
      "CA certificates of the API server (also --ca; default the cluster's)",
      { aliases: ['ca'], helpGroup: 'CLUSTER' },
    ),
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags } = await this.parse(KubeconfigCreate)
    const { context } = this
    const { out, 'client-certificate': cert, csr, force, 'client-key': keyFile } = flags
    const tokenFile = flags['token-file']
    if (cert === undefined && csr === undefined && tokenFile === undefined)
      throw new KcertError('KCERT_USAGE', '--client-certificate, --csr or --token-file is required', {
        next: '--client-certificate client.crt --client-key client.key',
      })
    if (!flags['embed-certs'] && (cert === undefined || cert === '-' || keyFile === '-'))
      throw new KcertError(
        'KCERT_USAGE',
        '--no-embed-certs needs --client-certificate and --client-key as files',
        {
          why: 'the kubeconfig then contains the paths of these files',
        },
      )
    if (out === '-') throw wouldBePrinted('a kubeconfig with a credential', '--out FILE')
    checkFiles({
      inputs: flagFiles(
        flags,
        'client-certificate',
        'client-key',
        'password-file',
        'token-file',
        'certificate-authority',
      ),
      outputs: [{ by: '--out', path: out, holds: 'key' }],
      replace: force || flags['dry-run'],
    })
    const { namespace, user } = flags
    const certificateFile = flags['embed-certs'] ? undefined : cert
    const keyByPath = flags['key-by-path'] || certificateFile !== undefined
    const make = async (connection: Connection, csrChain?: Awaited<ReturnType<typeof this.ofRequest>>) => {
      if (tokenFile !== undefined) {
        const token = oneWord(await readSecretText(tokenFile, context), tokenFile)
        return { text: tokenKubeconfig(connection, user!, token, namespace), name: user!, notices: [] }
      }
      const pair =
        csrChain ??
        (await readClientPair(cert!, () => readKeyFile(keyFile!, flags['password-file'], context), context))
      const { chain, key, notices } = pair
      const settings = { connection, chain, key, keyByPath, certificateFile, user, namespace }
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
        : await this.connectionFromFlags(
            flags.server,
            flags['certificate-authority']!,
            flags['cluster-name'],
          ).then(async (connection) => ({
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
    await this.show(flags.output, report, renderCreated, { notices: report.notices })
    return exitOfContexts(contexts, () => true)
  }

  /** Returns the certificate of a request, checked against the key. */
  private async ofRequest(
    cluster: Cluster,
    name: string,
    flags: Flag.ClusterFlags & { 'client-key'?: string | undefined; 'password-file'?: string | undefined },
  ) {
    const { context } = this
    const key = await readKeyFile(flags['client-key']!, flags['password-file'], context)
    const object = await settledRequest(cluster.requests, name, undefined)
    const expected = { key, ca: undefined, acceptsNames: false, now: context.clock() }
    return { chain: fitCertificate(object, expected).chain, key, notices: [] as string[] }
  }

  private async connectionFromFlags(server: string, ca: string, clusterName: string): Promise<Connection> {
    const url = URL.parse(server)
    if (url?.protocol !== 'https:') {
      const what = `--server ${JSON.stringify(server)} is not the URL of an API server`
      throw new KcertError('KCERT_USAGE', what, {
        why: 'it begins with https://',
        next: commandLine`--server ${`https://${server.replace(/^[a-z]*:\/\//, '')}`}`,
      })
    }
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
  throw new KcertError('KCERT_USAGE', `${file === '-' ? 'standard input' : file} contains no bearer token`, {
    why: token === '' ? 'it is empty' : 'a token contains no spaces',
  })
}
