import {
  authorityFlags,
  authorityInputs,
  ledgerOf,
  openAuthorityFiles,
  withLedger,
} from '../../app/ca/authority-files.ts'
import { termsOf } from '../../app/ca/signing-profile.ts'
import { entriesToSign } from '../../app/csr/request-input.ts'
import { builtInProfileNames } from '../../ca/profile.ts'
import type { SigningReport } from '../../ca/report.ts'
import { requestsOf } from '../../ca/request-file.ts'
import { checkRequests, locationOf, signAll, signedCertificate } from '../../ca/signing.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles } from '../../cli/command-files.ts'
import {
  booleanFlag,
  clusterExits,
  clusterFlags,
  operands,
  repeatedFlag,
  reportFormatFlag,
  valueFlag,
} from '../../cli/flags.ts'
import { readInput } from '../../cli/input.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderSigning } from '../../output/ca.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'
import { writePublicFile } from '../../system/output-file.ts'
import { looksLikePem } from '../../x509/pem.ts'

export default class CaSign extends KcertCommand {
  static override summary = 'Sign certificate requests as kube-controller-manager does.'

  static override description =
    `Common name, organizations, alternative names and key come from the request, whose own signature must count. Other
attributes of the subject are signed only if --allow-subject-attributes or the profile (subjectAttributes: [OU, C]) lists them. Usages and lifetime come from --usage
and --duration or from a profile; every other extension that was requested is left out. Certificates begin 5 minutes ago and
never outlive their CA. All requests are signed, or none.

Every serial number is written into the CA's ledger before a certificate leaves kcert: ca.ledger.jsonl beside ca.pem, a line of
JSON for each certificate. No number is ever given twice.

With --csr or --csr-signer the requests are those of a cluster: what is approved, not failed and not issued is signed by spec.usages
and spec.expirationSeconds, and the certificate is put onto the object. A profile then is the most that is granted. Signers of
Kubernetes itself are left to kube-controller-manager.

Profiles: ${builtInProfileNames.join(', ')}, or those of --config, a file as cfssl sign reads it, or this in YAML:

    default:
      usages: [digital signature, key encipherment, server auth]
      duration: 8760h
    profiles:
      client:
        usages: [digital signature, client auth]
        duration: 24h`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'all are signed',
    [exitCodes.usage]: 'wrong usage, an unknown profile, or an input that cannot be read',
    [exitCodes.no]: 'a request is refused or not approved, or the CA cannot sign',
    [exitCodes.unreachable]:
      'a file could not be written, another kcert uses the ledger, or the cluster did not answer; running it again does no harm',
    [exitCodes.refused]:
      'the file of --out is there already, the ledger is damaged, or a request is for a signer of Kubernetes',
  }

  static override examples = KcertCommand.examplesOf({
    'A serving certificate':
      'kcert ca sign server.csr --ca ca.pem --ca-key ca-key.pem --usage "digital signature" --usage "server auth" --out server.crt',
    "A request from cfssl's JSON with names, by cfssl's configuration":
      'kcert ca sign server.csr --ca ca.pem --ca-key ca-key.pem --config ca-config.json --profile kubernetes --allow-subject-attributes C,ST,L,OU --out server.crt',
    'A request of the cluster, as its signer, with the configuration of cfssl unchanged':
      'kcert ca sign --csr my-svc.my-namespace --ca ca.pem --ca-key ca-key.pem --config server-signing-config.json',
    'All that wait, approved, for a signer of your own':
      'kcert ca sign --csr-signer example.com/serving --ca ca.pem --ca-key ca-key.pem --duration 90d --fail',
    'A short-lived client certificate':
      'kcert ca sign user.csr --ca ca.pem --ca-key ca-key.pem --profile client --duration 8h --out user.crt',
    'Many at once':
      'kcert ca sign requests/*.csr --ca ca.pem --ca-key ca-key.pem --profile server --out all.pem',
  })

  static override args = { request: operands('PEM with one request or many, or DER; "-" for standard input') }

  static override flags = {
    ...authorityFlags,
    usage: repeatedFlag(
      'USAGE',
      'what the certificate is for, as spec.usages says it: "server auth"; with commas for several',
      { exclusive: ['profile', 'config'], delimiter: ',' },
    ),
    profile: valueFlag('NAME', 'usages and lifetime by name'),
    config: valueFlag('FILE', 'file of profiles; without --profile its default'),
    duration: valueFlag(
      'DURATION',
      "how long it is valid (also --expiry), as 8h or 365d, at least 10m; a profile is not exceeded. Without it 8760h, or the profile's",
      // As ca init, ca renew and renew call it.
      { aliases: ['expiry'] },
    ),
    'allow-subject-attributes': repeatedFlag(
      'TYPE',
      'attributes of the subject to sign besides CN and O: C,ST,L,OU',
      { delimiter: ',' },
    ),
    out: valueFlag(
      'FILE',
      'where the certificates go, in the order of the requests; "-" prints them. Not needed for requests of a cluster',
    ),
    force: booleanFlag('replace a file that is there'),
    csr: repeatedFlag('NAME', 'a request of the cluster; with commas for several', {
      helpGroup: 'CLUSTER',
      delimiter: ',',
    }),
    'csr-signer': valueFlag('NAME', 'all requests of the cluster that wait for this signer', {
      helpGroup: 'CLUSTER',
    }),
    'csr-selector': valueFlag('LABELS', 'all requests of the cluster that wait and have these labels', {
      helpGroup: 'CLUSTER',
    }),
    'kubernetes-signers': booleanFlag(
      'sign for kubernetes.io/… too, in place of kube-controller-manager and by its rules',
      { helpGroup: 'CLUSTER' },
    ),
    fail: booleanFlag('put the condition Failed onto requests that break a rule, which tells their owners', {
      helpGroup: 'CLUSTER',
    }),
    'dry-run': booleanFlag('show what would be signed of the cluster', { helpGroup: 'CLUSTER' }),
    ...clusterFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands } = await this.parse(CaSign)
    const { force, output } = flags
    if (flags.csr !== undefined || flags['csr-signer'] !== undefined || flags['csr-selector'] !== undefined) {
      if (operands.length > 0)
        throw new KcertError(
          'KCERT_USAGE',
          'requests of files and of the cluster are not signed in one run',
          {
            next: 'leave out the files, or --csr',
          },
        )
      const [{ signOnCluster }, { renderSignedRequests }] = await Promise.all([
        import('../../app/ca/sign-on-cluster.ts'),
        import('../../output/signed-requests.ts'),
      ])
      const { report, notes, exit } = await signOnCluster(flags, this.context)
      await this.show(output, report, renderSignedRequests, notes)
      return exit
    }
    if (operands.length === 0)
      throw new KcertError('KCERT_USAGE', 'no request is named', {
        next: 'kcert ca sign FILE --ca ca.pem --ca-key ca-key.pem --profile server --out server.crt',
      })
    const out = flags.out ?? missingOut()
    const ledger = ledgerOf(flags)
    checkFiles({
      inputs: [
        ...authorityInputs(flags),
        { by: '--config', path: flags.config },
        ...operands.map((path) => ({ by: 'REQUEST', path })),
      ],
      outputs: [
        { by: '--out', path: out, holds: 'public' },
        { by: '--ledger', path: ledger, holds: 'ledger' },
      ],
      replace: force,
    })
    const { profile, notices } = await termsOf(flags, this.context)
    const authority = await openAuthorityFiles(flags, this.context)
    const entries = []
    for (const name of operands) {
      const bytes = await readInput(name, this.context)
      entries.push(...(looksLikePem(bytes) ? requestsOf(name, bytes) : await entriesToSign(bytes, name)))
    }
    const requests = checkRequests(entries, profile)

    const { clock, random } = this.context
    const signed = await withLedger(ledger, (opened) =>
      signAll(requests, authority, profile, opened, clock(), random),
    )

    const certificates = signed.map(signedCertificate)
    const pem = certificates.map((certificate) => certificate.pem).join('')
    if (out !== '-') writePublicFile(out, pem, { replace: force })
    const notes = certificates.flatMap((certificate) =>
      certificate.notices.map((notice) => `${locationOf(certificate)}: ${notice}`),
    )
    const { subject, notAfter, fingerprintSha256 } = authority.certificate
    const report: SigningReport = {
      apiVersion: 'kcert/v1',
      kind: 'SignedCertificates',
      ca: { subject: subject.text, notAfter: rfc3339(notAfter), fingerprintSha256 },
      usages: [...profile.usages],
      lifetimeSeconds: profile.ttlMs / 1000,
      certificates,
      files: { ...(out === '-' ? {} : { certificates: out }), ledger },
      notices: [...notices],
    }
    await this.show(output, report, () => (out === '-' ? pem : renderSigning(report)), [...notices, ...notes])
    return exitCodes.done
  }
}

function missingOut(): never {
  throw new KcertError('KCERT_USAGE', 'Missing required flag out', { next: '--out -' })
}
