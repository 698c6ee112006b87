import type { LocatedKey } from '../../cli/key-file.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import type { Connection } from '../../cluster/connection.ts'
import { caConfigMap, type Place, tlsSecret } from '../../csr/certificate-objects.ts'
import type { FetchedOne, FetchReport } from '../../csr/fetch-report.ts'
import { checkCertificate, issuedChain, notIssued, refuseUnfit } from '../../csr/fetched.ts'
import { stateOf } from '../../csr/life.ts'
import { quoted } from '../../csr/quoting.ts'
import { requestWord } from '../../csr/request-name.ts'
import { signingRequestOfObject } from '../../csr/request-object.ts'
import type { RequestsApi } from '../../csr/requests-api.ts'
import type { SigningRequest } from '../../csr/signing-request.ts'
import { type Wait, waitForCertificate } from '../../csr/waiting.ts'
import { commandLine } from '../../errors/command-line.ts'
import { given } from '../../errors/given.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { type Certificate, readCertificates, writeCertificates } from '../../x509/certificate.ts'
import { writePrivateKey } from '../../x509/new-key.ts'
import { certificateFacts } from './certificate-facts.ts'
import { noSuchRequest } from './request-names.ts'

/** Returns the named object when it is issued, denied or failed; immediately if the command does not wait. */
export async function settledRequest(
  api: RequestsApi,
  name: string,
  wait: { readonly durationMs: number; readonly onChange?: Wait['onChange'] } | undefined,
  uid?: string,
): Promise<SigningRequest> {
  if (wait === undefined) {
    const object = await api.get(name)
    if (object === undefined) throw noSuchRequest(name)
    return signingRequestOfObject(object)
  }
  const signal = AbortSignal.timeout(wait.durationMs)
  const found = await waitForCertificate(api, {
    name,
    signal,
    ...given({ uid, onChange: wait.onChange }),
  })
  if (found === undefined) throw noSuchRequest(name)
  const state = stateOf(found)
  if (state === 'pending' || state === 'approved') throw waitOver(found)
  return found
}

export interface Expected {
  readonly key: LocatedKey | undefined
  readonly ca: { readonly certificates: readonly Certificate[]; readonly place: string } | undefined
  readonly acceptsNames: boolean
  readonly now: Date
}

/** A certificate that passed all checks. */
export interface Fetched {
  readonly object: SigningRequest
  readonly chain: ReturnType<typeof issuedChain>
  readonly checks: FetchReport['checks']
}

/**
 * Returns the certificate of an object. Throws KCERT_CSR_NOT_ISSUED, and KCERT_CERTIFICATE_UNFIT for one that does not match the
 * request.
 */
export function fitCertificate(object: SigningRequest, { key, ca, acceptsNames, now }: Expected): Fetched {
  if (object.certificate === undefined || stateOf(object) === 'denied') throw notIssued(object)
  const chain = issuedChain(object)
  const checks = checkCertificate(chain[0], object, {
    ...given({ key: key && { publicKey: key.publicKey, place: key.file }, ca }),
    now,
  })
  refuseUnfit(checks, object, { acceptsNames })
  return { object, chain, checks }
}

export interface ManifestSettings {
  readonly secret: Place | undefined
  readonly configMap: Place | undefined
}

/** Returns the requested Secret and ConfigMap. Throws KCERT_USAGE if a key or a CA is missing. */
export function certificateObjects(
  { secret, configMap }: ManifestSettings,
  { chain }: Fetched,
  key: LocatedKey | undefined,
  caPem: () => string,
): object[] {
  const objects: object[] = []
  if (secret !== undefined) {
    if (key === undefined)
      throw new KcertError('KCERT_USAGE', '--secret needs --key FILE', {
        why: 'a Secret of type kubernetes.io/tls contains the private key',
        next: 'kcert csr fetch --help',
      })
    objects.push(tlsSecret(secret, writeCertificates(chain), writePrivateKey(key.keyObject, 'kubernetes')))
  }
  if (configMap !== undefined) objects.push(caConfigMap(configMap, caPem()))
  return objects
}

/**
 * Returns the CA that signed a certificate, as PEM: the named one, or that of the kubeconfig if it signed. The CA of a custom
 * signer is not in the cluster.
 */
export function caPemOf(
  { chain, object }: Fetched,
  named: readonly Certificate[] | undefined,
  connection: () => Connection,
): string {
  if (named !== undefined) return writeCertificates(named)
  const { certificateAuthority } = connection()
  const own = certificateAuthority === undefined ? [] : readCertificates(certificateAuthority)
  const issuers = own.filter((ca) => chain.some((one) => one.isSignedBy(ca)))
  if (issuers.length > 0) return writeCertificates(issuers)
  throw new KcertError('KCERT_USAGE', `the CA of ${quoted(object.signerName)} is unknown`, {
    why: 'the CA of the kubeconfig did not sign this certificate; add --ca FILE',
    next: 'kcert csr fetch --help',
  })
}

/** Returns the report of the fetched certificate. */
export function fetchReport(
  fetched: Fetched,
  files: FetchReport['files'],
  notices: readonly string[],
): FetchReport {
  return {
    apiVersion: 'kcert/v1',
    kind: 'FetchedCertificate',
    name: fetched.object.name ?? '',
    ...fetchedFacts(fetched),
    pem: writeCertificates(fetched.chain),
    files,
    notices: [...notices],
  }
}

/** Returns the facts of a fetched certificate, and what it was compared with. */
export function fetchedFacts({ object, chain, checks }: Fetched): NonNullable<FetchedOne['certificate']> {
  const [leaf] = chain
  const { fingerprintSha256, ...facts } = certificateFacts(leaf)
  return {
    signerName: object.signerName,
    ...facts,
    extendedKeyUsage: [...(leaf.extendedKeyUsage ?? [])],
    fingerprintSha256,
    checks: checks.map(({ id, ok, detail }) => ({ id, ok, detail })),
  }
}

/** Returns notices about the connection that new kubeconfigs get. A kubeconfig without a CA trusts the system's CAs. */
export function connectionNotices({
  certificateAuthority,
  skipsTlsVerify,
}: ReturnType<Cluster['connection']>): string[] {
  if (skipsTlsVerify)
    return ['the new kubeconfig does not verify the API server, like the kubeconfig that kcert uses']
  return certificateAuthority === undefined
    ? ['the new kubeconfig has no CA and trusts the CAs of the machine, like the kubeconfig that kcert uses']
    : []
}

function waitOver(object: SigningRequest): KcertError {
  const name = object.name ?? ''
  const isPending = stateOf(object) === 'pending'
  const what = `the CertificateSigningRequest ${quoted(name)} ${isPending ? 'is still pending' : 'is approved, but still not signed'}`
  return new KcertError('KCERT_CSR_WAIT_OVER', what, {
    why: '--wait timed out; nothing is lost, and the same command continues from here',
    next: commandLine`kcert csr explain ${requestWord(name)}`,
  })
}
