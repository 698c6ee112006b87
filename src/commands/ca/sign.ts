import { caFlags, caInputs, issuanceLogPath, openCaFiles, withIssuanceLog } from '../../app/ca/ca-files.ts'
import { termsOf } from '../../app/ca/signing-profile.ts'
import { entriesToSign } from '../../app/csr/request-input.ts'
import { builtInProfileNames } from '../../ca/profile.ts'
import type { SigningReport } from '../../ca/report.ts'
import { requestsOf } from '../../ca/request-file.ts'
import { checkRequests, locationOf, signAll, signedCertificate } from '../../ca/signing.ts'
import { type FlagsOf, KcertCommand } from '../../cli/base-command.ts'
import { checkFiles } from '../../cli/command-files.ts'
import * as Flag from '../../cli/flags.ts'
import { readInput } from '../../cli/input.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderSigning } from '../../output/ca.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'
import { writePublicFile } from '../../system/output-file.ts'
import { looksLikePem } from '../../x509/pem.ts'

const onlyOnCluster = ['dry-run', 'fail', 'kubernetes-signers'] as const
const notWithKubeadm = [
  ...['ca', 'ca-key', 'issuance-log', 'usage', 'profile', 'config', 'allow-subject-attributes', 'out'],
  ...['csr', 'csr-signer', 'csr-selector', ...onlyOnCluster],
]

export default class CaSign extends KcertCommand {
  static override summary = 'Sign certificate signing requests (CSRs) as kube-controller-manager does.'

  static override description =
    `Common name, organizations, SANs and key come from the request, and its signature must be valid. Other subject attributes are
signed only if --allow-subject-attributes or the profile (subjectAttributes: [OU, C]) lists them. Usages and validity come from
--usage and --duration, or from a profile. All other requested extensions are left out. Certificates are backdated by 5 minutes, and
never outlive their CA. Either all requests are signed or none.

Every serial number is recorded in the CA's issuance log before the certificate is written. The log of ca.pem is
ca.issuance-log.jsonl, with one line of JSON for each certificate. No serial number is used twice.

With --csr, --csr-signer or --csr-selector, the requests are CertificateSigningRequests of a cluster. kcert signs those that are
approved and neither failed nor issued, with their spec.usages and spec.expirationSeconds, and uploads the certificates. A profile
then limits usages and validity. kcert skips Kubernetes' own signers, unless you add --kubernetes-signers.

With --kubeadm, the requests are those of a control plane with an external CA, as kcert csr create --kubeadm or kubeadm certs
generate-csr writes them. Give their folder, or files such as apiserver.csr, etcd/server.csr and admin.conf.csr. The file name
selects the CA in --ca-dir and the usages. A request is refused if its subject, SANs or requested usages do not fit. Certificates
are written to --out-dir at the same relative paths. For kubeconfigs, the output shows the kcert kubeconfig set-client commands.

The built-in profiles are ${builtInProfileNames.join(', ')}. --config names a file with others: the file that cfssl sign reads, or YAML:

    default:
      usages: [digital signature, key encipherment, server auth]
      duration: 8760h
    profiles:
      client:
        usages: [digital signature, client auth]
        duration: 24h`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'all requests were signed',
    usage: 'wrong usage, an unknown profile, or an input cannot be read',
    no: 'a request was refused or is not approved, or the CA cannot sign',
    unreachable:
      'a file cannot be written, the issuance log is locked by another kcert process, or the API server could not be reached; it is safe to run the command again',
    refused:
      "the file of --out already exists, the issuance log is damaged, or a request is for one of Kubernetes' own signers",
  })

  static override examples = KcertCommand.examplesOf({
    'Sign a serving certificate':
      'kcert ca sign server.csr --ca ca.pem --ca-key ca-key.pem --usage "digital signature" --usage "server auth" --out server.crt',
    'Sign a request that has C, ST, L and OU, with a cfssl configuration':
      'kcert ca sign server.csr --ca ca.pem --ca-key ca-key.pem --config ca-config.json --profile kubernetes --allow-subject-attributes C,ST,L,OU --out server.crt',
    'Sign a CSR of the cluster, with an unchanged cfssl configuration':
      'kcert ca sign --csr my-svc.my-namespace --ca ca.pem --ca-key ca-key.pem --config server-signing-config.json',
    'Sign all approved CSRs for your own signer':
      'kcert ca sign --csr-signer example.com/serving --ca ca.pem --ca-key ca-key.pem --duration 90d --fail',
    'Sign a short-lived client certificate':
      'kcert ca sign user.csr --ca ca.pem --ca-key ca-key.pem --profile client --duration 8h --out user.crt',
    'Sign all requests of a control plane with an external CA':
      'kcert ca sign --kubeadm --ca-dir /root/external-ca --out-dir signed requests',
    'Sign several requests at once':
      'kcert ca sign requests/*.csr --ca ca.pem --ca-key ca-key.pem --profile server --out all.pem',
  })

  static override args = {
    request: Flag.operands('PEM with one or more requests, or DER; "-" for standard input'),
  }

  static override flags = {
    ...caFlags,
    ca: Flag.value('FILE', 'certificate of the CA; required without --kubeadm'),
    'ca-key': Flag.value('FILE', 'private key of the CA; required without --kubeadm'),
    usage: Flag.repeated(
      'USAGE',
      'usage as in spec.usages, such as "server auth"; separate several with commas',
      { exclusive: ['profile', 'config'], delimiter: ',' },
    ),
    profile: Flag.value(
      'NAME',
      'profile for usages and validity; for a REQUEST, --usage, --profile or --config is required',
    ),
    config: Flag.value('FILE', 'file with profiles; without --profile, its default profile is used'),
    duration: Flag.value(
      'DURATION',
      "validity, such as 8h or 365d (also --expiry); at least 10m, at most the profile's (default the profile's, or 8760h)",
      // The name in ca init, ca renew and renew.
      { aliases: ['expiry'] },
    ),
    'allow-subject-attributes': Flag.repeated(
      'TYPE',
      'subject attributes to sign besides CN and O, such as C,ST,L,OU',
      { delimiter: ',' },
    ),
    out: Flag.value(
      'FILE',
      'file for the certificates, in the order of the requests; "-" for standard output. Optional with --csr',
    ),
    force: Flag.boolean('overwrite existing files'),
    ...Flag.inGroup('KUBEADM', {
      kubeadm: Flag.boolean('sign the requests of a kubeadm control plane, each with its own CA', {
        exclusive: notWithKubeadm,
        dependsOn: ['ca-dir', 'out-dir'],
      }),
      'ca-dir': Flag.value('DIR', 'folder with ca.crt, front-proxy-ca.crt, etcd/ca.crt and their keys', {
        dependsOn: ['kubeadm'],
      }),
      'out-dir': Flag.value('DIR', 'folder for the certificates; created if missing', {
        dependsOn: ['kubeadm'],
      }),
    }),
    ...Flag.inGroup('CLUSTER', {
      csr: Flag.repeated('NAME', 'name of a CSR of the cluster; separate several with commas', {
        delimiter: ',',
      }),
      'csr-signer': Flag.value('NAME', 'all approved CSRs of the cluster for this signer'),
      'csr-selector': Flag.value('LABELS', 'all approved CSRs of the cluster with these labels'),
      'kubernetes-signers': Flag.boolean(
        'also sign for kubernetes.io/… signers, by the rules of kube-controller-manager',
      ),
      fail: Flag.boolean('set the condition Failed on CSRs that break a rule of their signer'),
      'dry-run': Flag.boolean('show which CSRs of the cluster would be signed'),
    }),
    ...Flag.clusterFlags,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags: all, operands } = await this.parse(CaSign)
    const { force, output } = all
    if (all.kubeadm) return this.signKubeadm(operands, all)
    const { ca, 'ca-key': caKey } = all
    if (ca === undefined || caKey === undefined) throw missingCa(ca === undefined ? '--ca' : '--ca-key')
    const flags = { ...all, ca, 'ca-key': caKey }
    if (flags.csr !== undefined || flags['csr-signer'] !== undefined || flags['csr-selector'] !== undefined) {
      if (operands.length > 0)
        throw new KcertError(
          'KCERT_USAGE',
          'request files and CSRs of the cluster cannot be signed in one call',
        )
      const [{ signOnCluster }, { renderSignedRequests }] = await Promise.all([
        import('../../app/ca/sign-on-cluster.ts'),
        import('../../output/signed-requests.ts'),
      ])
      const { report, notes, exit } = await signOnCluster(flags, this.context)
      return this.show(output, report, renderSignedRequests, { notices: notes, exit })
    }
    const useless = onlyOnCluster.find((name) => flags[name])
    if (useless !== undefined)
      throw new KcertError('KCERT_USAGE', `--${useless} applies only to CSRs of the cluster`, {
        fix: 'name them with --csr, --csr-signer or --csr-selector',
      })
    if (operands.length === 0)
      throw new KcertError('KCERT_USAGE', 'no request given', {
        fix: 'name files with CSRs, or CSRs of the cluster with --csr or --csr-signer',
        next: 'kcert ca sign --help',
      })
    const out = flags.out ?? missingOut()
    const issuanceLog = issuanceLogPath(flags)
    checkFiles({
      inputs: [
        ...caInputs(flags),
        { by: '--config', path: flags.config },
        ...operands.map((path) => ({ by: 'REQUEST', path })),
      ],
      outputs: [
        { by: '--out', path: out, holds: 'public' },
        { by: '--issuance-log', path: issuanceLog, holds: 'log' },
      ],
      replace: force,
    })
    const { profile, notices } = await termsOf(flags, this.context)
    const signingCa = await openCaFiles(flags, this.context)
    const entries = []
    for (const name of operands) {
      const bytes = await readInput(name, this.context)
      entries.push(...(looksLikePem(bytes) ? requestsOf(name, bytes) : await entriesToSign(bytes, name)))
    }
    const requests = checkRequests(entries, profile)

    const { clock, random } = this.context
    const signed = await withIssuanceLog(issuanceLog, (opened) =>
      signAll(requests, signingCa, profile, opened, clock(), random),
    )

    const certificates = signed.map(signedCertificate)
    const pem = certificates.map((certificate) => certificate.pem).join('')
    if (out !== '-') writePublicFile(out, pem, { replace: force })
    const notes = certificates.flatMap((certificate) =>
      certificate.notices.map((notice) => `${locationOf(certificate)}: ${notice}`),
    )
    const { subject, notAfter, fingerprintSha256 } = signingCa.certificate
    const report: SigningReport = {
      apiVersion: 'kcert/v1',
      kind: 'SignedCertificates',
      ca: { subject: subject.text, notAfter: rfc3339(notAfter), fingerprintSha256 },
      usages: [...profile.usages],
      lifetimeSeconds: profile.ttlMs / 1000,
      certificates,
      files: { ...(out === '-' ? {} : { certificates: out }), issuanceLog },
      notices: [...notices],
    }
    return this.show(output, report, () => (out === '-' ? pem : renderSigning(report)), {
      notices: [...notices, ...notes],
    })
  }

  private async signKubeadm(operands: readonly string[], flags: SignFlags): Promise<ExitCode> {
    const { 'ca-dir': caDir, 'out-dir': outDir, output } = flags
    // oclif has already required both.
    if (caDir === undefined || outDir === undefined) throw new RangeError('--ca-dir and --out-dir')
    if (operands.length === 0)
      throw new KcertError('KCERT_USAGE', 'no request given', {
        why: 'give the folder of the requests, or their files',
        next: commandLine`kcert ca sign --kubeadm --ca-dir ${caDir} --out-dir ${outDir} .`,
      })
    const [{ signKubeadm }, { renderSignedControlPlane }] = await Promise.all([
      import('../../app/ca/sign-kubeadm.ts'),
      import('../../output/signed-control-plane.ts'),
    ])
    const report = await signKubeadm(operands, { ...flags, caDir, outDir }, this.context)
    return this.show(output, report, renderSignedControlPlane, { notices: report.notices })
  }
}

type SignFlags = FlagsOf<typeof CaSign.flags>

function missingCa(flag: '--ca' | '--ca-key'): KcertError {
  const fix = `name the file with the CA's ${flag === '--ca' ? 'certificate' : 'private key'}`
  return new KcertError('KCERT_USAGE', `${flag} is required`, { fix, next: 'kcert ca sign --help' })
}

function missingOut(): never {
  throw new KcertError('KCERT_USAGE', '--out is required', { next: '--out -' })
}
