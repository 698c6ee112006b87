import { kubernetesProfile } from '../../ca/profile.ts'
import { withCluster } from '../../cli/cluster.ts'
import { checkFiles } from '../../cli/command-files.ts'
import type { Context } from '../../cli/context.ts'
import type { ClusterFlags } from '../../cli/flags.ts'
import { tellChanges, whileStoppable } from '../../cli/interruption.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { writePublicFile } from '../../system/output-file.ts'
import { namesAmong } from '../csr/request-names.ts'
import { type CaFlags, caInputs, issuanceLogPath, openCaFiles } from './ca-files.ts'
import { exitOfSigning, type SigningSettings, signRequests } from './sign.ts'
import { durationMs, type ProfileFlags, termsOf, withSubjectAttributes } from './signing-profile.ts'

interface Flags extends CaFlags, ClusterFlags, ProfileFlags {
  readonly out: string | undefined
  readonly force: boolean
  readonly csr: readonly string[] | undefined
  readonly 'csr-signer': string | undefined
  readonly 'csr-selector': string | undefined
  readonly 'kubernetes-signers': boolean | undefined
  readonly fail: boolean | undefined
  readonly 'dry-run': boolean | undefined
}

/** Requests are signed one after the other; their certificates are uploaded in parallel. */
const uploadsAtOnce = 16

/** Signs the CSRs of a cluster that the flags of `kcert ca sign` select. */
export async function signOnCluster(flags: Flags, context: Context) {
  const { out, force } = flags
  if (out === '-') {
    const what =
      '--out - cannot be used with CSRs of a cluster: the certificates are uploaded to their objects'
    throw new KcertError('KCERT_USAGE', what, {
      next: '--out certificates.pem',
    })
  }
  const issuanceLog = issuanceLogPath(flags)
  checkFiles({
    inputs: [...caInputs(flags), { by: '--config', path: flags.config }],
    outputs: [
      { by: '--out', path: out, holds: 'public' },
      { by: '--issuance-log', path: issuanceLog, holds: 'log' },
    ],
    replace: force,
  })
  const isBounded = flags.usage !== undefined || flags.profile !== undefined || flags.config !== undefined
  const { profile, notices } = isBounded
    ? await termsOf(flags, context)
    : { profile: withSubjectAttributes(kubernetesProfile([], durationOf(flags)), flags), notices: [] }
  const signingCa = await openCaFiles(flags, context)
  const settings: SigningSettings = {
    names: namesAmong(flags.csr ?? []),
    signer: flags['csr-signer'],
    selector: flags['csr-selector'],
    isForKubernetes: Boolean(flags['kubernetes-signers']),
    marksFailed: Boolean(flags.fail),
    dryRun: Boolean(flags['dry-run']),
    concurrency: uploadsAtOnce,
  }
  const ports = { signingCa, profile, boundsUsages: isBounded, issuanceLog, context }
  const signed = await whileStoppable(tellChanges, context.stderr, () =>
    withCluster(context, flags, ({ requests: api }) => signRequests(settings, { ...ports, api })),
  )
  const certificates = signed.requests.flatMap(({ certificate }) => certificate ?? [])
  const isWritten = out !== undefined && certificates.length > 0
  if (isWritten) writePublicFile(out, certificates.map(({ pem }) => pem).join(''), { replace: force })
  const report = {
    ...signed,
    files: { ...(isWritten ? { certificates: out } : {}), ...signed.files },
    notices: [...notices],
  }
  const notes = [
    ...notices,
    ...signed.requests.flatMap(({ name, certificate }) =>
      (certificate?.notices ?? []).map((notice) => `${name}: ${notice}`),
    ),
  ]
  return { report, notes, exit: exitOfSigning(report) }
}

function durationOf({ duration }: Flags): number | undefined {
  return duration === undefined ? undefined : durationMs(duration)
}
