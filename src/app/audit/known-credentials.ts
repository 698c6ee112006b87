import type { KnownCredentials, OldSigners } from '../../audit/known.ts'
import type { TokenSignatures } from '../../audit/token-signatures.ts'
import { issuedIn } from '../../ca/issuance-log.ts'
import { readCertificateFiles } from '../../cli/certificate-files.ts'
import { withCluster } from '../../cli/cluster.ts'
import type { Context } from '../../cli/context.ts'
import type { ClusterFlags } from '../../cli/flags.ts'
import { readInput } from '../../cli/input.ts'
import { orUndefined } from '../../errors/caught.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { shortList } from '../../errors/short-list.ts'
import { Inspection } from '../../inspection/inspection.ts'
import type { Source, UnreadableSource } from '../../inspection/source.ts'
import { defaultThresholds } from '../../inspection/thresholds.ts'
import { placeText } from '../../output/places.ts'
import { readFile } from '../../system/files.ts'
import { serviceAccountKeyIds } from '../../x509/service-account-token.ts'
import { apiServersOf, scanCluster } from '../inspect/cluster.ts'
import { readTargets } from '../inspect/targets.ts'

// The credentials that `kcert audit` can name: certificates and tokens in files, kubeconfigs, Secrets and CSRs, and entries of
// issuance logs.

/** Returns the old CAs and keys in these files, and adds the keys to `signatures`. Throws KCERT_CA_UNFIT and KCERT_USAGE if a file contains none. */
export async function readOldSigners(
  caFiles: readonly string[],
  keyFiles: readonly string[],
  signatures: TokenSignatures,
  context: Context,
): Promise<OldSigners> {
  const cas = []
  for (const file of caFiles) {
    const found = (await readCertificateFiles([file], context)).filter(({ isCa }) => isCa)
    if (found.length === 0)
      throw new KcertError('KCERT_CA_UNFIT', `${file} contains no CA certificate`, {
        why: 'a CA certificate has CA: TRUE; --ca names the file of the old CA',
        next: commandLine`kcert inspect ${file}`,
      })
    cas.push(...found)
  }
  const keyIds = new Set<string>()
  for (const file of keyFiles) {
    const bytes = await readInput(file, context)
    const ids = orUndefined(() => serviceAccountKeyIds(bytes)) ?? []
    if (ids.length === 0)
      throw new KcertError('KCERT_USAGE', `${file} contains no service account key`, {
        why: '--sa-key takes a public or private key in PEM, such as sa.pub, which is not encrypted',
        next: commandLine`kcert inspect ${file}`,
      })
    for (const id of ids) keyIds.add(id)
    signatures.addKeys(bytes)
  }
  return { cas, keyIds }
}

interface KnownSources {
  /** Files, folders, and "-". */
  readonly targets: readonly string[]
  readonly cluster?: ClusterFlags | undefined
}

/** What was read, and what was not. */
export interface KnownReading {
  readonly notes: readonly string[]
  /** False if the API server forbade reading a part. */
  readonly isPermitted: boolean
  /** How many the cluster has, or why that is unknown; undefined without a cluster. */
  readonly apiServers: number | string | undefined
}

/** Adds the credentials in these files, and in the Secrets, ConfigMaps and requests of the cluster. Throws for a missing target. */
export async function readKnownCredentials(
  known: KnownCredentials,
  { targets, cluster: flags }: KnownSources,
  signatures: TokenSignatures,
  context: Context,
): Promise<KnownReading> {
  const inspection = new Inspection({
    now: context.clock(),
    thresholds: defaultThresholds,
    readReferencedFile: (name) => {
      const file = readFile(name)
      if ('bytes' in file) signatures.addTokens(textOf(file.bytes))
      return file
    },
  })
  const notes: string[] = []
  const visit = (input: Source | UnreadableSource): Promise<void> | void => {
    if ('reason' in input) {
      if (input.reason !== 'seen-before') notes.push(`${input.name} ${input.detail}`)
      return
    }
    const entries = issuedIn(input.bytes)
    if (entries === undefined) {
      signatures.addKeys(input.bytes)
      signatures.addTokens(textOf(input.bytes))
      return inspection.add(input)
    }
    for (const entry of entries) known.addIssued(entry, input.name)
  }
  const options = { context, timeoutMs: serverTimeoutMs, isPart: true } as const
  const { failed } = await readTargets(targets, options, visit)
  if (failed[0] !== undefined) throw failed[0]
  const { isPermitted, apiServers } =
    flags === undefined
      ? { isPermitted: true, apiServers: undefined }
      : await withCluster(context, flags, async (cluster) => {
          const { failure, isPermitted } = await scanCluster(cluster, {
            addObject: (name, object, kind) => {
              signatures.addTokens(JSON.stringify(object))
              return inspection.addObject(name, object, kind)
            },
            addRefused: (name, error) => inspection.addRefused(name, error),
          })
          if (failure !== undefined) throw failure
          const { count, hidden } = await apiServersOf(cluster)
          const reason = hidden ? 'you may not list EndpointSlices' : 'no EndpointSlice lists them'
          return { isPermitted, apiServers: count ?? `unknown, because ${reason}` }
        })
  if (!isPermitted)
    notes.push('the API server forbids listing some objects of the cluster, so their credentials are unknown')
  for (const { certificate, ...place } of inspection.found)
    known.addCertificate(certificate, placeText(place))
  const forged: string[] = []
  for (const { claims, ...place } of inspection.tokens)
    if (signatures.isForged(claims)) forged.push(placeText(place))
    else known.addToken(claims, placeText(place))
  if (forged.length > 0)
    notes.push(
      `tokens that are skipped, because the key that they name (kid) did not sign them: ${shortList(forged)}`,
    )
  return { notes, isPermitted, apiServers }
}

const serverTimeoutMs = 5000

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
