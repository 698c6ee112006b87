import { type RequestEntry, requestsOf } from '../../ca/request-file.ts'
import { readSigningRequests } from '../../csr/manifest-reading.ts'
import type { SigningRequest } from '../../csr/signing-request.ts'
import { commandLine } from '../../errors/command-line.ts'
import { given } from '../../errors/given.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { sourceName } from '../../errors/source-name.ts'
import { looksLikePem, readPem, writePem } from '../../x509/pem.ts'

/** The flags about the request, which override the file. */
export interface RequestFlags {
  readonly name?: string | undefined
  readonly signer?: string | undefined
  readonly usage?: readonly string[] | undefined
  readonly 'expiration-seconds'?: number | undefined
  readonly requester?: string | undefined
  readonly 'requester-group'?: readonly string[] | undefined
}

/**
 * Returns the only request of a file: a CertificateSigningRequest in YAML or JSON, or a request in PEM or DER, which the flags
 * turn into an object. Throws KCERT_USAGE if a name is missing, and KCERT_MANIFEST_MALFORMED if there is no request.
 */
export async function readSigningRequest(
  bytes: Uint8Array,
  source: string,
  flags: RequestFlags,
): Promise<SigningRequest> {
  const text = manifestText(bytes)
  const object =
    text === undefined
      ? draftOf(bytes, source, flags)
      : chosen(await readSigningRequests(text), source, flags.name)
  return withFlags(object, flags)
}

/**
 * Returns all requests of a file of manifests, or the named one; or the only request in PEM or DER, which the flags turn into an
 * object. Throws as `readSigningRequest` does.
 */
export async function readSigningRequestsOf(
  bytes: Uint8Array,
  source: string,
  flags: RequestFlags,
): Promise<SigningRequest[]> {
  const text = manifestText(bytes)
  if (text === undefined || flags.name !== undefined) {
    const object = await readSigningRequest(bytes, source, flags)
    return [text === undefined && flags.name !== undefined ? { ...object, name: flags.name } : object]
  }
  const objects = await readSigningRequests(text)
  if (objects.length === 0) return [chosen(objects, source, undefined)]
  return objects.map((object) => withFlags(object, flags))
}

/** Returns the requests of a file, for a signer: spec.request of each object of a manifest, or those in PEM or DER. */
export async function entriesToSign(bytes: Uint8Array, source: string): Promise<RequestEntry[]> {
  const text = manifestText(bytes)
  if (text === undefined) return requestsOf(source, bytes)
  const objects = await readSigningRequests(text)
  // This throws the error for a file without a request.
  if (objects.length === 0) chosen(objects, source, undefined)
  return objects.flatMap(({ name, request = Buffer.of() }) =>
    requestsOf(source, request).map((one) => (name === undefined ? one : { ...one, entry: name })),
  )
}

function manifestText(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes).toString('utf8')
  return text.includes('CertificateSigningRequest') ? text : undefined
}

function withFlags(object: SigningRequest, flags: RequestFlags): SigningRequest {
  const { requester, signer, usage } = flags
  const groups = flags['requester-group']
  const expirationSeconds = flags['expiration-seconds']
  return {
    ...object,
    ...given({ signerName: signer, usages: wordsOf(usage), expirationSeconds, username: requester }),
    ...given({ groups: wordsOf(groups) }),
  }
}

/** Returns the values of a flag that can be repeated, and can have several comma-separated values; undefined without any. */
export function wordsOf(values: readonly string[] = []): string[] | undefined {
  const words = values.flatMap((value) => value.split(',')).map((word) => word.trim())
  return words.length === 0 ? undefined : words
}

function chosen(
  objects: readonly SigningRequest[],
  source: string,
  name: string | undefined,
): SigningRequest {
  const named = name === undefined ? objects : objects.filter((object) => object.name === name)
  const [object, second] = named
  if (object !== undefined && second === undefined) return object
  if (object === undefined) {
    const names = objects.map((one) => one.name ?? '(no name)').join(', ')
    const what = `${sourceName(source)} contains no CertificateSigningRequest${name === undefined ? '' : ` "${name}"`}`
    throw new KcertError('KCERT_MANIFEST_MALFORMED', what, {
      ...(names === '' ? {} : { why: `it contains ${names}` }),
      next: 'kubectl get csr -o yaml > requests.yaml',
    })
  }
  const what = `${sourceName(source)} contains ${named.length} requests, and kcert checks one at a time`
  throw new KcertError('KCERT_USAGE', what, {
    why: `it contains ${named
      .slice(0, 10)
      .map((one) => one.name ?? '(no name)')
      .join(', ')}${named.length > 10 ? ', …' : ''}`,
    ...(object.name !== undefined && { next: commandLine`--name ${object.name}` }),
  })
}

function draftOf(bytes: Uint8Array, source: string, { signer }: RequestFlags): SigningRequest {
  const isDer = bytes[0] === 0x30 && !looksLikePem(bytes)
  if (!isDer && !looksLikePem(bytes)) {
    throw new KcertError('KCERT_MANIFEST_MALFORMED', `${sourceName(source)} contains no CSR`, {
      why: 'it is neither PEM nor DER, nor YAML or JSON with a CertificateSigningRequest',
      next: commandLine`kcert inspect ${source}`,
    })
  }
  const labels = isDer ? [] : readPem(bytes).blocks.map(({ label }) => label)
  const count = isDer ? 1 : labels.filter((label) => /CERTIFICATE REQUEST$/.test(label)).length
  if (count === 0 && labels.length > 0) {
    throw new KcertError('KCERT_MANIFEST_MALFORMED', `${sourceName(source)} contains no CSR`, {
      why: `it contains ${labels.slice(0, 3).join(', ')}`,
      next: commandLine`kcert inspect ${source}`,
    })
  }
  if (count > 1) {
    const what = `${sourceName(source)} contains ${count} CSRs, and an object has one`
    throw new KcertError('KCERT_USAGE', what, {
      why: 'the API server and the signer read only the first one in spec.request; write each CSR to its own file',
    })
  }
  if (signer === undefined) {
    const what = `${sourceName(source)} is a CSR without a Kubernetes object, and --signer is missing`
    throw new KcertError('KCERT_USAGE', what, {
      why: 'the rules depend on the signer',
      next: '--signer kubernetes.io/kube-apiserver-client --usage "client auth"',
    })
  }
  return {
    labels: {},
    request: isDer ? Buffer.from(writePem('CERTIFICATE REQUEST', bytes)) : bytes,
    signerName: signer,
    usages: [],
    groups: [],
    extra: {},
    conditions: [],
  }
}
