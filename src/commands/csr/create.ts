import { finishInterruptedPair } from '../../app/ca/ca-files.ts'
import { writeKubeadmRequests } from '../../app/csr/kubeadm-files.ts'
import { requestFlags } from '../../app/csr/request-flags.ts'
import {
  checkOutputs,
  deliverRequest,
  filesOf,
  isFile,
  isKeyInside,
  isReport,
} from '../../app/csr/request-outputs.ts'
import { askForRequest } from '../../app/csr/request-questions.ts'
import {
  checkEffect,
  checkTogether,
  hasSubject,
  inputsOf,
  kubeadmSettingsOf,
  settingsOf,
} from '../../app/csr/request-settings.ts'
import { type FlagsOf, KcertCommand } from '../../cli/base-command.ts'
import { readCertificateFiles } from '../../cli/certificate-files.ts'
import { checkFiles } from '../../cli/command-files.ts'
import { readPassword } from '../../cli/input.ts'
import { readKeyFile } from '../../cli/key-file.ts'
import { canAsk, DeclinedError, terminalAsker } from '../../cli/prompts.ts'
import type { CreatedRequest, CreateReport, Manifest } from '../../csr/create-report.ts'
import { createdRequest, keyNotices } from '../../csr/created-request.ts'
import { kubeadmRequests } from '../../csr/kubeadm-requests.ts'
import { manifestOf } from '../../csr/manifest.ts'
import { makeRequest, type RequestSpec } from '../../csr/request-spec.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { argumentVector, commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderCreated } from '../../output/csr-create.ts'
import { renderJson } from '../../output/json.ts'
import { renderYaml } from '../../output/yaml.ts'
import { writeCertificates } from '../../x509/certificate.ts'
import { generatePrivateKey, writePrivateKey } from '../../x509/new-key.ts'

export default class CsrCreate extends KcertCommand {
  static override summary = 'Create a CSR and, with --key-out, its private key.'

  static override description =
    `The subject and SANs come from flags such as --cn and --dns, from a preset (--user, --kubelet-client, --kubelet-serving,
--service), or from the JSON that cfssl genkey reads. With --kubeadm, kcert creates the requests of a control plane with an external CA,
like kubeadm certs generate-csr. Without these flags, kcert asks questions on a terminal.

The formats of -o:

  pem         the CSR
  manifest    the CertificateSigningRequest for kubectl apply, with signer and usages. kcert refuses one that would fail on the cluster
  cfssl       {"csr", "key"} for cfssljson -bare. It contains the private key, so it needs --out FILE (mode 0600) or --key-out -.
              With --key or --key-out FILE it has no "key"
  json, yaml  a report of what was created (docs/schemas/CreatedRequests.json), without the key

--key-out creates a private key with mode 0600. --key uses an existing one. One of them is required, except with
--kubeadm: its files go to --cert-dir and --kubeconfig-dir. kcert overwrites files only with --force.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the CSR is created',
    usage: 'wrong usage, or an input that cannot be read',
    no: 'the cluster would refuse it, the key is not usable, or you did not answer a question',
    unreachable: 'a file could not be written',
    refused: 'a file exists already, or a private key would be printed',
  })

  static override examples = KcertCommand.examplesOf({
    'Create a CSR for a user, and send it with kubectl apply':
      'kcert csr create --user ann --org dev --key-out ann-key.pem -o manifest | kubectl apply -f -',
    'Create a CSR for a server in the cluster, for your own signer':
      'kcert csr create --service my-svc.my-namespace --ip 192.0.2.24 --signer example.com/serving --key-out server-key.pem -o manifest --out csr.yaml',
    'Create it from the input of cfssl genkey':
      'kcert csr create --cfssl server.json --key-out server-key.pem --out server.csr',
    'Replace cfssl genkey in a pipeline':
      'kcert csr create --cfssl - -o cfssl --key-out - < server.json | cfssljson -bare server',
    "Create a CSR for a kubelet's serving certificate":
      'kcert csr create --kubelet-serving node-1 --dns node-1 --ip 10.0.0.7 --key-out kubelet-key.pem -o manifest',
    'Create all keys, CSRs and kubeconfigs of a control plane with an external CA':
      'kcert csr create --kubeadm all --kubeadm-config kubeadm.yaml --cert-dir pki --kubeconfig-dir .',
    'Create it with an existing key':
      'kcert csr create --cn web --dns web.example.com --key web-key.pem --out web.csr',
  })

  static override flags = requestFlags

  protected override async perform() {
    const { flags } = await this.parse(CsrCreate)
    checkTogether(flags)
    if (flags.kubeadm !== undefined && !asksForOneFile(flags))
      return this.makeKubeadmFiles(flags.kubeadm, flags)
    if (flags.kubeadm === undefined && !hasSubject(flags)) return this.ask()
    return this.makeOne(flags)
  }

  private async ask(): Promise<ExitCode> {
    if (!canAsk(this.context))
      throw new KcertError('KCERT_USAGE', 'no subject or SAN given', {
        why: 'a CSR needs a subject or SANs, from flags or, on a terminal, from your answers',
        next: 'kcert csr create --help',
      })
    try {
      const words = await askForRequest(await terminalAsker(this.context))
      this.notice(
        `${commandLine`without questions: kcert csr create ${argumentVector([...this.argv, ...words])}`}\n`,
      )
      const { flags } = await this.parse(CsrCreate, [...this.argv, ...words])
      return await this.makeOne(flags)
    } catch (error) {
      if (error instanceof DeclinedError) return exitCodes.no
      throw error
    }
  }

  private async makeOne(flags: CreateFlags): Promise<ExitCode> {
    checkEffect(flags)
    checkOutputs(flags)
    const { out, 'key-out': keyOut } = flags
    if (isFile(out)) await finishInterruptedPair(out)
    checkFiles(filesOf(flags))

    const spec =
      flags.kubeadm === undefined
        ? await settingsOf(flags, this.context)
        : await this.kubeadmSpec(flags.kubeadm, flags)
    const made = await this.make(spec, flags)
    const manifest = flags.output === 'manifest' ? manifestOf(spec, made.der) : undefined
    await deliverRequest({ ...made, manifest }, flags, (text) => this.answer(text))
    const files = {
      ...(isFile(out) ? { request: out } : {}),
      ...(isFile(keyOut) ? { key: keyOut } : isFile(out) && isKeyInside(flags) ? { key: out } : {}),
    }
    const object = isReport(flags.output) ? objectForReport(spec, made.der) : { manifest, notices: [] }
    const created = createdRequest(made.der, files, { row: flags.kubeadm, manifest: object.manifest })
    return this.tell([created], [...spec.notices, ...object.notices, ...keyNotices(created)], flags)
  }

  private async make(
    spec: RequestSpec,
    flags: CreateFlags,
  ): Promise<{ der: Uint8Array; keyPem: string | undefined }> {
    if (flags.key !== undefined) {
      const { keyObject } = await readKeyFile(flags.key, flags['password-file'], this.context)
      return { der: makeRequest(spec, keyObject), keyPem: undefined }
    }
    const password = await readPassword(flags['password-file'], this.context)
    const isForKubernetes =
      flags.cfssl !== undefined || flags.kubeadm !== undefined || flags.output === 'cfssl'
    const format = flags['key-format'] ?? (isForKubernetes && password === undefined ? 'kubernetes' : 'pkcs8')
    const key = generatePrivateKey(spec.keyType)
    return { der: makeRequest(spec, key), keyPem: writePrivateKey(key, format, password) }
  }

  private async makeKubeadmFiles(row: string, flags: CreateFlags): Promise<ExitCode> {
    if (flags.output !== 'pem' && !isReport(flags.output))
      throw new KcertError('KCERT_USAGE', `-o ${flags.output} cannot be used with --kubeadm`, {
        why: 'an external CA signs the CSR files themselves; -o json and -o yaml print a report',
      })
    if (flags.out !== undefined || flags['key-out'] !== undefined)
      throw new KcertError('KCERT_USAGE', `--kubeadm ${row} writes several files`, {
        why: '--out and --key-out name one CSR and one key; use --cert-dir and --kubeconfig-dir instead',
        next: commandLine`kcert csr create --kubeadm ${row} --cert-dir pki --kubeconfig-dir .`,
      })
    checkEffect(flags)
    if (flags.key !== undefined)
      throw new KcertError('KCERT_USAGE', `--key cannot be used with --kubeadm ${row}`, {
        why: 'kcert creates a separate key for every certificate of a control plane; --key works for one certificate, with --out FILE',
        next: commandLine`kcert csr create --kubeadm ${row} --cert-dir pki --kubeconfig-dir .`,
      })
    if (flags['password-file'] !== undefined || flags['key-format'] !== undefined)
      throw new KcertError('KCERT_USAGE', '--password-file and --key-format cannot be used with --kubeadm', {
        why: "control plane components read unencrypted keys in Kubernetes' own format only",
      })
    const settings = await kubeadmSettingsOf(flags, this.context)
    const requests = kubeadmRequests(row, settings)
    const created = await writeKubeadmRequests(
      requests,
      {
        certDir: flags['cert-dir'],
        kubeconfigDir: flags['kubeconfig-dir'],
        caPem: await this.caPem(flags['ca-cert']),
      },
      { replace: flags.force, inputs: inputsOf(flags) },
    )
    const notices = [...settings.notices, ...requests.flatMap(({ spec }) => spec.notices)]
    return this.tell(created, notices, { ...flags, out: 'files' })
  }

  private async kubeadmSpec(row: string, flags: CreateFlags): Promise<RequestSpec> {
    const settings = await kubeadmSettingsOf(flags, this.context)
    const [request] = kubeadmRequests(row, settings)
    if (request === undefined) throw new RangeError(`no row ${row}`)
    return { ...request.spec, notices: [...settings.notices, ...request.spec.notices] }
  }

  private async caPem(file: string | undefined): Promise<string | undefined> {
    if (file === undefined) return undefined
    const certificates = await readCertificateFiles([file], this.context)
    const leaf = certificates.find(({ isCa }) => !isCa)
    if (leaf !== undefined) throw noCa(file, leaf.subject.text)
    return writeCertificates(certificates)
  }

  private async tell(
    requests: CreatedRequest[],
    notices: readonly string[],
    { output, out }: Pick<CreateFlags, 'output' | 'out'>,
  ): Promise<ExitCode> {
    const report: CreateReport = {
      apiVersion: 'kcert/v1',
      kind: 'CreatedRequests',
      requests,
      notices: [...notices],
    }
    if (output === 'json') return this.answer(renderJson(report))
    if (output === 'yaml') return this.answer(renderYaml(report))
    this.note(notices)
    return this.answer(isFile(out) ? renderCreated(report) : '')
  }
}

type CreateFlags = FlagsOf<typeof requestFlags>

// One certificate row of kubeadm's table can be written to two files, like any other request.
function asksForOneFile({ kubeadm, 'cert-dir': certDir, key, 'key-out': keyOut }: CreateFlags): boolean {
  const isOne = kubeadm !== 'all' && !kubeadm?.endsWith('.conf') && certDir === undefined
  return isOne && (keyOut ?? key) !== undefined
}

/** Returns the object of a request, if it can have one. A report on a request for another CA is not an error. */
function objectForReport(spec: RequestSpec, der: Uint8Array): { manifest?: Manifest; notices: string[] } {
  if (spec.signerName === undefined) return { notices: [] }
  try {
    return { manifest: manifestOf(spec, der), notices: [] }
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    return { notices: [error.message] }
  }
}

function noCa(file: string, subject: string): KcertError {
  const what = `--ca-cert ${file} is not a CA certificate: ${subject || 'its subject is empty'}`
  return new KcertError('KCERT_CA_UNFIT', what, {
    why: 'the kubeconfigs would trust no API server; use the cluster CA, such as /etc/kubernetes/pki/ca.crt',
    next: commandLine`kcert inspect ${file}`,
  })
}
