import { kubernetesProfile } from '../ca/profile.ts'
import type { ExitCode } from '../errors/codes.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { renderSignedRequests } from '../output/signed-requests.ts'
import { writePublicFile } from '../system/output-file.ts'
import { authorityInputs, ledgerOf, openAuthorityFiles } from './authority-files.ts'
import { openClusterOf } from './cluster.ts'
import type { ClusterFlags } from './cluster-flags.ts'
import { checkFiles } from './command-files.ts'
import type { Context } from './context.ts'
import { tellChanges, whileStoppable } from './interruption.ts'
import { namesAmong } from './request-names.ts'
import { exitOfSigning, type SigningWish, signRequests } from './sign-requests.ts'
import { durationMs, type ProfileFlags, termsOf, withSubjectAttributes } from './signing-profile.ts'
import { stdoutView } from './view.ts'

interface Flags extends ClusterFlags, ProfileFlags {
  readonly ca: string
  readonly 'ca-key': string
  readonly 'ca-password-file': string | undefined
  readonly ledger: string | undefined
  readonly out: string | undefined
  readonly force: boolean
  readonly csr: readonly string[] | undefined
  readonly 'csr-signer': string | undefined
  readonly 'csr-selector': string | undefined
  readonly 'kubernetes-signers': boolean | undefined
  readonly fail: boolean | undefined
  readonly 'dry-run': boolean | undefined
}

/** Requests are signed one after the other, but their certificates travel side by side. */
const uploadsAtOnce = 16

/** Signs the requests of a cluster that the flags of `kcert ca sign` name. */
export async function signOnCluster(flags: Flags, context: Context) {
  const { out, force } = flags
  if (out === '-')
    throw new KcertError('KCERT_USAGE', 'the certificates of a cluster are put onto their objects', {
      next: '--out FILE',
    })
  const ledger = ledgerOf(flags)
  checkFiles({
    inputs: [...authorityInputs(flags), { by: '--config', path: flags.config }],
    outputs: [
      { by: '--out', path: out, holds: 'public' },
      { by: '--ledger', path: ledger, holds: 'ledger' },
    ],
    replace: force,
  })
  const isBounded = flags.usage !== undefined || flags.profile !== undefined || flags.config !== undefined
  const { profile, notices } = isBounded
    ? await termsOf(flags, context)
    : { profile: withSubjectAttributes(kubernetesProfile([], durationOf(flags)), flags), notices: [] }
  const authority = await openAuthorityFiles(flags, context)
  const cluster = await openClusterOf(context, flags)
  try {
    const wish: SigningWish = {
      names: namesAmong(flags.csr ?? [], 'ca sign --csr NAME'),
      signer: flags['csr-signer'],
      selector: flags['csr-selector'],
      isForKubernetes: Boolean(flags['kubernetes-signers']),
      marksFailed: Boolean(flags.fail),
      dryRun: Boolean(flags['dry-run']),
      concurrency: uploadsAtOnce,
    }
    const signed = await whileStoppable(tellChanges, context.stderr, () =>
      signRequests(wish, {
        api: cluster.requests,
        authority,
        profile,
        boundsUsages: isBounded,
        ledger,
        context,
      }),
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
    const exit: ExitCode = exitOfSigning(report)
    return { report, notes, exit, text: renderSignedRequests(report, await stdoutView(context)) }
  } finally {
    cluster.close()
  }
}

function durationOf({ duration }: Flags): number | undefined {
  return duration === undefined ? undefined : durationMs(duration)
}
