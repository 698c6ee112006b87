import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { builtInProfileNames } from '../../ca/profile.ts'
import type { SigningReport } from '../../ca/report.ts'
import { requestsOf } from '../../ca/request-file.ts'
import { checkRequests, placeOf, signAll, signedCertificate } from '../../ca/signing.ts'
import {
  authorityFlags,
  authorityInputs,
  ledgerOf,
  openAuthorityFiles,
  withLedger,
} from '../../cli/authority-files.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { clusterExits, clusterFlags } from '../../cli/cluster-flags.ts'
import { checkFiles } from '../../cli/command-files.ts'
import { readInput } from '../../cli/input.ts'
import { renderReport, reportFormatFlag } from '../../cli/report-format.ts'
import { entriesToSign } from '../../cli/request-input.ts'
import { termsOf } from '../../cli/signing-profile.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderNotices, renderSigning } from '../../output/ca.ts'
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
    [exitCodes.done]: 'all are signed',
    [exitCodes.usage]: 'wrong usage, an unknown profile, or an input that cannot be read',
    [exitCodes.no]: 'a request is refused or not approved, or the CA cannot sign',
    [exitCodes.unreachable]:
      'a file could not be written, another kcert uses the ledger, or the cluster did not answer; running it again does no harm',
    [exitCodes.refused]:
      'the file of --out is there already, the ledger is damaged, or a request is for a signer of Kubernetes',
    ...clusterExits,
  }

  static override examples = [
    {
      description: 'A serving certificate',
      command:
        '<%= config.bin %> ca sign server.csr --ca ca.pem --ca-key ca-key.pem --usage "digital signature" --usage "server auth" --out server.crt',
    },
    {
      description: "A request from cfssl's JSON with names, by cfssl's configuration",
      command:
        '<%= config.bin %> ca sign server.csr --ca ca.pem --ca-key ca-key.pem --config ca-config.json --profile kubernetes --allow-subject-attributes C,ST,L,OU --out server.crt',
    },
    {
      description: 'A request of the cluster, as its signer, with the configuration of cfssl unchanged',
      command:
        '<%= config.bin %> ca sign --csr my-svc.my-namespace --ca ca.pem --ca-key ca-key.pem --config server-signing-config.json',
    },
    {
      description: 'All that wait, approved, for a signer of your own',
      command:
        '<%= config.bin %> ca sign --csr-signer example.com/serving --ca ca.pem --ca-key ca-key.pem --duration 90d --fail',
    },
    {
      description: 'A short-lived client certificate',
      command:
        '<%= config.bin %> ca sign user.csr --ca ca.pem --ca-key ca-key.pem --profile client --duration 8h --out user.crt',
    },
    {
      description: 'Many at once',
      command:
        '<%= config.bin %> ca sign requests/*.csr --ca ca.pem --ca-key ca-key.pem --profile server --out all.pem',
    },
  ]

  static override args = {
    request: Args.string({
      description: 'PEM with one request or many, or DER; "-" for standard input',
      multiple: true,
      ignoreStdin: true,
    }),
  }

  static override flags = {
    ...authorityFlags,
    usage: Flags.string({
      description:
        'what the certificate is for, as spec.usages says it: "server auth"; with commas for several',
      helpValue: 'USAGE',
      multiple: true,
      multipleNonGreedy: true,
      delimiter: ',',
      exclusive: ['profile', 'config'],
    }),
    profile: Flags.string({ description: 'usages and lifetime by name', helpValue: 'NAME' }),
    config: Flags.string({
      description: 'file of profiles; without --profile its default',
      helpValue: 'FILE',
    }),
    duration: Flags.string({
      description:
        "how long it is valid (also --expiry), as 8h or 365d, at least 10m; a profile is not exceeded. Without it 8760h, or the profile's",
      helpValue: 'DURATION',
      // As ca init, ca renew and renew call it.
      aliases: ['expiry'],
    }),
    'allow-subject-attributes': Flags.string({
      description: 'attributes of the subject to sign besides CN and O: C,ST,L,OU',
      helpValue: 'TYPE',
      multiple: true,
      multipleNonGreedy: true,
      delimiter: ',',
    }),
    out: Flags.string({
      description:
        'where the certificates go, in the order of the requests; "-" prints them. Not needed for requests of a cluster',
      helpValue: 'FILE',
    }),
    force: Flags.boolean({ description: 'replace a file that is there' }),
    csr: Flags.string({
      description: 'a request of the cluster; with commas for several',
      helpValue: 'NAME',
      helpGroup: 'CLUSTER',
      multiple: true,
      multipleNonGreedy: true,
      delimiter: ',',
    }),
    'csr-signer': Flags.string({
      description: 'all requests of the cluster that wait for this signer',
      helpValue: 'NAME',
      helpGroup: 'CLUSTER',
    }),
    'csr-selector': Flags.string({
      description: 'all requests of the cluster that wait and have these labels',
      helpValue: 'LABELS',
      helpGroup: 'CLUSTER',
    }),
    'kubernetes-signers': Flags.boolean({
      description: 'sign for kubernetes.io/… too, in place of kube-controller-manager and by its rules',
      helpGroup: 'CLUSTER',
    }),
    fail: Flags.boolean({
      description: 'put the condition Failed onto requests that break a rule, which tells their owners',
      helpGroup: 'CLUSTER',
    }),
    'dry-run': Flags.boolean({
      description: 'show what would be signed of the cluster',
      helpGroup: 'CLUSTER',
    }),
    ...clusterFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands } = await this.parse(CaSign)
    const { force, output } = flags
    if (flags.csr !== undefined || flags['csr-signer'] !== undefined || flags['csr-selector'] !== undefined) {
      if (operands.length > 0) throw eitherOr()
      const { signOnCluster } = await import('../../cli/sign-on-cluster.ts')
      const { report, text, notes, exit } = await signOnCluster(flags, this.context)
      if (output === 'text') this.notice(renderNotices(notes))
      await this.answer(renderReport(output, report, () => text))
      return exit
    }
    if (operands.length === 0) throw nothingToSign()
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
    if (output === 'text') {
      this.notice(renderNotices(notices))
      for (const certificate of certificates) {
        const place = placeOf(certificate)
        this.notice(renderNotices(certificate.notices.map((notice) => `${place}: ${notice}`)))
      }
    }
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
    await this.answer(renderReport(output, report, () => (out === '-' ? pem : renderSigning(report))))
    return exitCodes.done
  }
}

function missingOut(): never {
  throw new KcertError('KCERT_USAGE', 'Missing required flag out', { next: '--out -' })
}

function eitherOr(): KcertError {
  return new KcertError('KCERT_USAGE', 'requests of files and of the cluster are not signed in one run', {
    next: 'leave out the files, or --csr',
  })
}

function nothingToSign(): KcertError {
  return new KcertError('KCERT_USAGE', 'no request is named', {
    next: 'kcert ca sign FILE --ca ca.pem --ca-key ca-key.pem --profile server --out server.crt',
  })
}
